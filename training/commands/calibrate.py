"""`calibrate`: fits temperatures, the biases of "yes", and the act head on held-out rows."""

import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch.nn import functional as F

from ..model.batches import Batch
from .data import ASKED, HELD_OUT
from ..calibration.fitting import calibrated, weights_of
from ..data.layout import TYPE_IDS
from ..calibration.metrics import best_temperature, negative_log_likelihood
from ..model.encoder import ACT_FEATURES, Model, load_model, save_model
from ..model.predict import scored
from ..quantize.ranges import read_ranges, simulate
from ..data.rows import Row, label_index, read_rows

CALIBRATION = "calibration.json"
WIDEST_MARGIN = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True, help="folder that `data` wrote")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the calibrated checkpoint and calibration.json"
    )
    parser.add_argument(
        "--per-source", type=int, default=250, help="held-out rows of each source (default: %(default)s)"
    )
    parser.add_argument(
        "--shift",
        type=float,
        default=1.0,
        help="factor on the temperatures: what users ask is further from the training sources than their held-out rows are (default: %(default)s)",
    )
    parser.add_argument("--ranges", type=Path, help="file that `train --int8` wrote: fit to what int8 will answer")
    parser.add_argument("--device", default="cpu")


def chosen(rows: list[Row], per_source: int) -> list[Row]:
    """Returns at most `per_source` rows of each source."""
    rows = Random(5).sample(rows, len(rows))
    seen: Counter[str] = Counter()
    return [row for row in rows if (seen.update([row.source]) or seen[row.source]) <= per_source]


def spread(logits: torch.Tensor) -> torch.Tensor:
    """Returns the act head's features of the logits [questions, options]: margin, log of the top probability, entropy,
    log of the number of options."""
    padded = F.pad(logits, (0, 2), value=-1e4)
    log_p = F.log_softmax(padded, dim=-1)
    top = padded.topk(2).values
    entropy = -(log_p.exp() * log_p).sum(-1)
    many = (logits > -1e4).sum(-1).clamp(min=1).float().log()
    return torch.stack([(top[:, 0] - top[:, 1]).clamp(max=WIDEST_MARGIN), log_p.max(-1).values, entropy, many], dim=-1)


def act_features(model: Model, batch: Batch) -> torch.Tensor:
    """Returns the logits and the act head's input, concatenated [questions, options + width + features]."""
    x, values = model.encode(batch)
    logits = model.logits(x, values, batch)
    length = batch.ids.shape[1]
    row = batch.markers[:, 0] // length
    heads = torch.stack(
        [x[r, (batch.part[r] == batch.part.flatten()[m]).nonzero()[0, 0]] for r, m in zip(row, batch.markers[:, 0])]
    )
    return torch.cat([heads, spread(logits), logits], dim=-1)


def fit_act(model: Model, features: torch.Tensor, right: torch.Tensor, weights: torch.Tensor, steps: int = 300) -> None:
    """Fits the act head by logistic regression: "act" means "the top answer is right". It has a weight decay, because
    there are few rows and many inputs."""
    scale = features.std(0).clamp(min=1e-3)
    middle = features.mean(0)
    inputs = (features - middle) / scale
    layer = torch.nn.Linear(features.shape[1], 1)
    torch.nn.init.zeros_(layer.weight)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.02, weight_decay=0.0)
    # The state and the question tell little that generalises, so they have a larger decay; the spread of the logits
    # tells most.
    decay = torch.full((features.shape[1],), 0.02)
    decay[-ACT_FEATURES:] = 1e-4
    for _ in range(steps):
        loss = (
            F.binary_cross_entropy_with_logits(layer(inputs).squeeze(1), right, weight=weights)
            + (decay * layer.weight.square()).sum()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        weight = layer.weight[0] / scale
        bias = layer.bias[0] - (weight * middle).sum()
        # The head has two logits, whose difference is the regression's output.
        model.act.weight.copy_(torch.stack([weight, -weight]) / 2)
        model.act.bias.copy_(torch.stack([bias, -bias]) / 2)


def run(args: argparse.Namespace) -> None:
    """Writes `checkpoint.safetensors`, with the act head fitted, and `calibration.json`, with the temperatures."""
    torch.manual_seed(0)
    model = load_model(args.checkpoint)
    if args.ranges:
        simulate(model, read_ranges(args.ranges))
    asked = args.rows / ASKED
    rows = chosen(list(read_rows(asked if asked.exists() else args.rows / HELD_OUT)), args.per_source)
    width = model.act.in_features
    both = [torch.split(found, (width, len(found) - width)) for found in scored_features(model, rows, args.device)]
    logits = [found.double().numpy() for _, found in both]
    labels = [label_index(row.question, row.label) for row in rows]
    fitted = calibrated(rows, logits, labels, args.shift)
    right = torch.tensor([float(found.argmax() == label) for found, label in zip(logits, labels)])
    fit_act(
        model.cpu(),
        torch.stack([features for features, _ in both]),
        right,
        torch.tensor(weights_of(rows), dtype=torch.float32),
    )
    args.out.mkdir(parents=True, exist_ok=True)
    save_model(model, args.out / "checkpoint.safetensors")
    (args.out / CALIBRATION).write_text(
        json.dumps(
            {**fitted, "shift": args.shift, "rows": len(rows), "accuracy": round(right.mean().item(), 4)}, indent=2
        )
        + "\n"
    )
    print((args.out / CALIBRATION).read_text())


def scored_features(model: Model, rows: list[Row], device: str) -> list[torch.Tensor]:
    """Returns each row's act features and logits in one vector."""
    return scored(
        model,
        rows,
        lambda batch: act_features(model, batch),
        device,
        state_max=512,
        max_tokens=4096,
        before=model.act.in_features,
    )


def fit_temperatures(rows: list[Row], logits: list[np.ndarray], labels: list[int]) -> dict[str, float]:
    """Returns the temperature of each type, with the same weight for every source; 1 for a type without rows."""
    temperature = dict.fromkeys(TYPE_IDS, 1.0)
    for kind in TYPE_IDS:
        own = [i for i, row in enumerate(rows) if row.question["type"] == kind]
        if own:
            weights = weights_of([rows[i] for i in own])
            kept, right = [logits[i] for i in own], [labels[i] for i in own]
            temperature[kind] = best_temperature(kept, right, weights)
            before, after = (negative_log_likelihood(kept, right, t, weights) for t in (1.0, temperature[kind]))
            print(f"{kind}: {len(own)} rows, temperature {temperature[kind]}, loss {before:.4f} to {after:.4f}")
    return temperature
