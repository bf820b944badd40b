"""`average`: makes one model from the averaged weights of two."""

import argparse
from pathlib import Path

from ..model.weights import load_model, save_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "--first", type=Path, required=True, help="checkpoint or model folder, such as the one that a run began with"
    )
    parser.add_argument(
        "--second", type=Path, required=True, help="checkpoint or model folder, such as where the run ended"
    )
    parser.add_argument("--share", type=float, default=0.5, help="share of the second, 0 to 1 (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint to write")


def run(args: argparse.Namespace) -> None:
    """Writes the average of the two models. It works if one was trained from the other, so that their weights lie in
    one valley of the loss."""
    if not 0 <= args.share <= 1:
        raise SystemExit(f"--share is {args.share}, not 0 to 1")
    model, second = load_model(args.first), load_model(args.second).state_dict()
    first = model.state_dict()
    model.load_state_dict({name: (1 - args.share) * first[name] + args.share * second[name] for name in first})
    args.out.parent.mkdir(parents=True, exist_ok=True)
    save_model(model, args.out)
