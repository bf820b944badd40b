"""`card`: writes a model folder's README.md and plots from its results."""

import argparse
from pathlib import Path
from typing import cast

from ..data.files import object_in
from ..evaluate.answers import Results
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
    results = cast(Results, object_in(args.results))
    fp32 = cast(Results, object_in(args.fp32)) if args.fp32 else None
    notes = object_in(args.notes) if args.notes else {}
    text = card(results, fp32, notes)
    for name, content in {**plots(results), "README.md": text}.items():
        (args.folder / name).write_text(content, encoding="utf-8")
