"""`look`: measures a checkpoint quickly on the sets for choosing, without exporting it."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .evaluate import rows_of_sets
from ..evaluate.figures import summary
from ..calibration.metrics import softmax
from ..model.encoder import load_model
from ..model.predict import predict
from ..data.rows import Row, label_index

SHOWN = (
    "accuracy",
    "majority",
    "area",
    "best_threshold_accuracy",
    "yes_said",
    "yes_right",
    "among_16",
    "without_none",
    "loss",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--checkpoint", type=Path, required=True, help="checkpoint or model folder")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with dev/*.jsonl.gz; only the sets to choose by are read"
    )
    parser.add_argument("--sets", nargs="+", help="only these sets (default: all to choose by)")
    parser.add_argument(
        "--limit", type=int, default=200, help="at most so many rows of each set (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="the figures, as JSON")
    parser.add_argument("--bf16", action="store_true", help="products in bfloat16")
    parser.add_argument("--device", default="cpu")


def looked_at(rows: list[Row], logits: list[np.ndarray]) -> dict[str, Any]:
    """Returns a set's figures."""
    found = []
    for row, own in zip(rows, logits):
        label, p = label_index(row.question, row.label), softmax(own)
        found.append(
            {
                "right": float(own.argmax() == label),
                "confidence": float(p.max()),
                "act": None,
                "loss": -float(np.log(max(p[label], 1e-12))),
                "logits": own,
            }
        )
    return summary(rows, found)


def run(args: argparse.Namespace) -> None:
    """Prints the figures of each set and their mean."""
    args.half, model, sets = "choosing", load_model(args.checkpoint), {}
    for name, rows in rows_of_sets(args):
        with torch.autocast(torch.device(args.device).type, torch.bfloat16, enabled=args.bf16):
            logits = [own.double().numpy() for own in predict(model, rows, args.device, state_max=1024)]
        sets[name] = looked_at(rows, logits)
        print(f"{name:20}", " ".join(f"{key} {sets[name][key]:.3f}" for key in SHOWN if key in sets[name]), flush=True)
    mean = float(np.mean([one["accuracy"] for one in sets.values()]))
    best = float(np.mean([one.get("best_threshold_accuracy", one["accuracy"]) for one in sets.values()]))
    print(
        f"mean accuracy {mean:.4f}, {best:.4f} with the best thresholds; similarity weighs {model.similar_scale.item():.2f}"
    )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(
            json.dumps(
                {
                    "mean_accuracy": mean,
                    "sets": {
                        name: {key: value for key, value in one.items() if key != "right"} for name, one in sets.items()
                    },
                },
                indent=1,
            )
            + "\n",
            encoding="utf-8",
        )
