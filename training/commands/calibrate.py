"""`calibrate`: fits temperatures, the biases of "yes", the none head and the act head on held-out rows."""

import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import cast

import torch

from ..calibration.act_head import act_features, fit_act
from ..calibration.fitting import CALIBRATION, Calibration, besides, calibrated, weights_of
from ..calibration.none_head import fit_none, none_features
from ..data.files import object_in
from ..data.question import label_index
from ..data.rows import ASKED, HELD_OUT, Row, read_rows
from ..model.encoder import Model, NoneHead
from ..model.predict import Reading, scored
from ..model.weights import load_model, save_model
from ..quantize.ranges import read_ranges, simulate
from .values import number, whole

FACTOR_HELP = (
    "factor on the temperatures: what users ask is further from the training sources than their held-out rows are "
    "(default: %(default)s)"
)

KEEP_HELP = (
    'model folder whose temperatures, biases and growth of "none of these" stay; only what the none head and the act '
    "head read of the checkpoint is fitted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True, help="folder that `data` wrote")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the calibrated checkpoint and calibration.json"
    )
    parser.add_argument(
        "--per-source", type=whole(1), default=250, help="held-out rows of each source (default: %(default)s)"
    )
    parser.add_argument("--shift", type=number(0.01), default=1.0, help=FACTOR_HELP)
    parser.add_argument("--keep-of", type=Path, metavar="FOLDER", help=KEEP_HELP)
    parser.add_argument("--ranges", type=Path, help="file that `train --int8` wrote: fit to what int8 will answer")
    parser.add_argument("--device", default="cpu")


def chosen(rows: list[Row], per_source: int) -> list[Row]:
    """Returns at most `per_source` rows of each source."""
    seen: Counter[str] = Counter()
    kept = []
    for row in Random(5).sample(rows, len(rows)):
        seen[row.source] += 1
        if seen[row.source] <= per_source:
            kept.append(row)
    return kept


def reading_on(device: str) -> Reading:
    """Returns how rows are read."""
    return Reading(device, state_max=512, max_tokens=4096)


def fit_none_on(model: Model, rows: list[Row], device: str, earlier: NoneHead | None = None) -> None:
    """Fits the none head on rows; its growth and its offset are those of an earlier one, if there is one."""
    model.none.clear()
    found = scored(model, rows, lambda batch: none_features(model, batch), reading_on(device))
    fit_none(model.cpu().none, rows, found, [label_index(row.question, row.label) for row in rows], earlier)
    print(f"none: {model.none.growth.item():.3f} x log(options) - {model.none.offset.item():.3f}", flush=True)


def scored_features(model: Model, rows: list[Row], device: str) -> list[torch.Tensor]:
    """Returns each row's act features and logits in one vector."""
    reading = reading_on(device)
    return scored(model, rows, lambda batch: act_features(model, batch), reading, before=model.act.in_features)


def values_of(folder: Path) -> Calibration:
    """Returns the temperatures and biases of a model folder."""
    found = cast(Calibration, object_in(folder / "config.json"))
    return cast(Calibration, {"temperature": found["temperature"], **besides(found)})


def run(args: argparse.Namespace) -> None:
    """Writes `checkpoint.safetensors`, with the heads fitted, and `calibration.json`, with the temperatures."""
    torch.manual_seed(0)
    if args.keep_of and args.shift != 1:
        raise ValueError("--shift does not go with --keep-of, which keeps the temperatures")
    kept = values_of(args.keep_of) if args.keep_of else None
    model = load_model(args.checkpoint)
    earlier = load_model(args.keep_of).none if args.keep_of else None
    if args.ranges:
        simulate(model, read_ranges(args.ranges))
    asked = args.rows / ASKED
    everything = list(read_rows(asked if asked.exists() else args.rows / HELD_OUT))
    if not everything:
        raise ValueError(f"{args.rows}: there are no held-out rows to fit to")
    rows = chosen(everything, args.per_source)
    # Few rows offer "none of these", so that all choices are needed.
    others = [row for row in rows if row.question["type"] != "choice"]
    fit_none_on(model, [row for row in everything if row.question["type"] == "choice"] + others, args.device, earlier)
    width = model.act.in_features
    both = [torch.split(found, (width, len(found) - width)) for found in scored_features(model, rows, args.device)]
    logits = [found.double().numpy() for _, found in both]
    labels = [label_index(row.question, row.label) for row in rows]
    values = kept or calibrated(rows, logits, labels, args.shift)
    right = torch.tensor([float(found.argmax() == label) for found, label in zip(logits, labels)])
    weights = torch.tensor(weights_of(rows), dtype=torch.float32)
    fit_act(model.cpu(), torch.stack([features for features, _ in both]), right, weights)
    args.out.mkdir(parents=True, exist_ok=True)
    save_model(model, args.out / "checkpoint.safetensors")
    accuracy = round(right.mean().item(), 4)
    text = json.dumps({**values, "shift": args.shift, "rows": len(rows), "accuracy": accuracy}, indent=2) + "\n"
    (args.out / CALIBRATION).write_text(text)
    print(text)
