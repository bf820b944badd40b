"""`card`: writes a model folder's README.md and plots from its results."""

import argparse
import json
from pathlib import Path

from ..evaluate.card import card, plots


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="the model folder")
    parser.add_argument("--results", type=Path, required=True, help="what `evaluate` wrote of it")
    parser.add_argument(
        "--notes", type=Path, help="why the model is bad at some sets: a JSON object of sentences by set"
    )
    parser.add_argument("--fp32", type=Path, help="what `evaluate` wrote of the same model in fp32")


def run(args: argparse.Namespace) -> None:
    """Writes README.md and two plots into the folder."""
    results = json.loads(args.results.read_text(encoding="utf-8"))
    fp32 = json.loads(args.fp32.read_text(encoding="utf-8")) if args.fp32 else None
    notes = json.loads(args.notes.read_text(encoding="utf-8")) if args.notes else {}
    for name, content in {**plots(results), "README.md": card(results, fp32, notes)}.items():
        (args.folder / name).write_text(content, encoding="utf-8")
