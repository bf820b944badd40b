"""`export`: makes a model folder from a checkpoint."""

import argparse
from pathlib import Path

from ..calibration.fitting import CALIBRATION, besides, fitted
from ..data.rows import HELD_OUT, read_rows
from ..folder.graph import build
from ..folder.writer import About, write_folder
from ..model.encoder import Model
from ..model.int8_matmul import Ranges
from ..model.served import keep_integers, served_ranges
from ..model.weights import load_model
from ..quantize.ranges import PERCENTILE, inputs_of, ranges_of, read_ranges, sample
from .values import number, version, whole

MAX_BYTES = 26_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "--checkpoint",
        type=Path,
        required=True,
        help="a checkpoint, or a model folder, whose ranges and temperatures it keeps",
    )
    parser.add_argument(
        "--calibration",
        type=Path,
        help=f"folder that `calibrate` wrote (default: temperatures of 1, or {CALIBRATION} beside the checkpoint)",
    )
    parser.add_argument(
        "--rows",
        type=Path,
        help="folder that `data` wrote: ranges are taken from held-out rows, where there are none yet",
    )
    parser.add_argument("--out", type=Path, required=True, help="the model folder")
    parser.add_argument("--version", type=version, required=True)
    parser.add_argument("--name", default="svc-small")
    parser.add_argument(
        "--percentile",
        type=number(50, 100),
        default=PERCENTILE,
        help="of the inputs of a product that int8 spans; 100 is min-max (default: %(default)s)",
    )
    parser.add_argument(
        "--weight-bits",
        type=int,
        default=8,
        choices=(7, 8),
        help="of a weight; whichever it is, no processor saturates (default: %(default)s)",
    )
    parser.add_argument("--samples", type=whole(1), default=600, help="rows for the ranges")
    parser.add_argument(
        "--ranges",
        type=Path,
        help="file that `train --int8` wrote (default: the folder's own, or those of --samples held-out rows)",
    )
    parser.add_argument("--fp32", action="store_true", help="do not quantize")


def input_ranges(model: Model, args: argparse.Namespace) -> Ranges:
    """Returns the input range of each product: from the named file, else from the folder that is exported again, else
    from held-out rows."""
    if args.ranges:
        return read_ranges(args.ranges)
    own = served_ranges(args.checkpoint) if args.checkpoint.is_dir() else {}
    if own:
        return own
    if not args.rows:
        raise SystemExit("export: --rows or --ranges must say what goes into the products")
    rows = list(read_rows(args.rows / HELD_OUT))
    if not rows:
        raise ValueError(f"{args.rows / HELD_OUT}: there are no rows to take ranges from")
    return ranges_of(inputs_of(model, sample(rows, args.samples)), args.percentile)


def run(args: argparse.Namespace) -> None:
    """Writes the folder; fails if the graph is larger than the limit for a shipped model."""
    model = load_model(args.checkpoint).eval()
    ranges = None if args.fp32 else input_ranges(model, args)
    beside = args.calibration or (args.checkpoint if args.checkpoint.is_dir() else args.checkpoint.parent)
    graph = build(model, ranges, args.weight_bits)
    if args.checkpoint.is_dir() and ranges is not None and args.weight_bits == 8:
        keep_integers(graph, args.checkpoint, inputs=not args.ranges)
    found = fitted(beside)
    write_folder(args.out, graph, About(args.name, args.version, found["temperature"], besides(found)))
    size = (args.out / "model.onnx").stat().st_size
    print(f"{args.out}: {size / 1e6:.2f} MB")
    if size > MAX_BYTES and not args.fp32:
        raise SystemExit(f"{args.out / 'model.onnx'}: {size} bytes; at most {MAX_BYTES} are shipped")
