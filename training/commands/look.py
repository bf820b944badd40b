"""`look`: measures a checkpoint quickly on the sets for choosing, without exporting it."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from ..calibration.metrics import Array
from ..data.rows import Row
from ..evaluate.answers import Sets
from ..evaluate.figures import Figures, add_candidate_figures, judged, summary
from ..model.predict import Reading, predict
from ..model.weights import load_model
from .values import whole

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
# The longest state in tokens that is read.
STATE_MAX = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--checkpoint", type=Path, required=True, help="checkpoint or model folder")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with dev/*.jsonl.gz; only the sets to choose by are read"
    )
    parser.add_argument("--sets", nargs="+", help="only these sets (default: all to choose by)")
    parser.add_argument(
        "--limit", type=whole(1), default=200, help="at most so many rows of each set (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="the figures, as JSON")
    parser.add_argument("--bf16", action="store_true", help="products in bfloat16")
    parser.add_argument("--device", default="cpu")


def run(args: argparse.Namespace) -> None:
    """Prints the figures of each set and their mean."""
    model, reading = load_model(args.checkpoint), Reading(args.device, STATE_MAX)
    sets: dict[str, Figures] = {}

    def ask(rows: list[Row]) -> list[Array]:
        with torch.autocast(torch.device(args.device).type, torch.bfloat16, enabled=args.bf16):
            return [own.double().numpy() for own in predict(model, rows, reading)]

    for name, rows in Sets(args.data, names=args.sets, limit=args.limit).rows():
        sets[name] = summary(rows, [judged(row, own) for row, own in zip(rows, ask(rows))])
        add_candidate_figures(sets[name], rows, ask)
        shown = {key: value for key, value in sets[name].items() if key in SHOWN}
        print(f"{name:20}", " ".join(f"{key} {shown[key]:.3f}" for key in SHOWN if key in shown), flush=True)
    mean = float(np.mean([one["accuracy"] for one in sets.values()]))
    best = float(np.mean([one.get("best_threshold_accuracy", one["accuracy"]) for one in sets.values()]))
    weight = f"similarity weighs {model.similar_scale.item():.2f}"
    print(f"mean accuracy {mean:.4f}, {best:.4f} with the best thresholds; {weight}")
    if args.out:
        kept = {name: {key: value for key, value in one.items() if key != "right"} for name, one in sets.items()}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"mean_accuracy": mean, "sets": kept}, indent=1)
        args.out.write_text(text + "\n", encoding="utf-8")
