"""`export`: makes a model folder from a checkpoint."""

import argparse
import json
from pathlib import Path
from typing import Any

import onnx

from ..data import layout
from .calibrate import CALIBRATION
from .data import HELD_OUT
from ..folder.reader import Folder, digest
from ..folder.golden import requests
from ..folder.graph import Ranges, build
from ..model.encoder import HEAD_DIM, HEADS, LAYERS, Model, load_model
from ..quantize.ranges import PERCENTILE, inputs_of, ranges_of, read_ranges, sample
from ..data.rows import read_rows
from ..model.served import keep_integers, served_ranges

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
    parser.add_argument("--version", required=True)
    parser.add_argument("--name", default="svc-small")
    parser.add_argument(
        "--percentile",
        type=float,
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
    parser.add_argument("--samples", type=int, default=600, help="rows for the ranges")
    parser.add_argument(
        "--ranges",
        type=Path,
        help="file that `train --int8` wrote (default: the folder's own, or those of --samples held-out rows)",
    )
    parser.add_argument(
        "--by-form",
        action="store_true",
        help="config.json also has temperatures by the number of options and what is added to yes by the form of a question; for servers that know them",
    )
    parser.add_argument("--fp32", action="store_true", help="do not quantize")


def make_config(folder: Path, name: str, version: str, temperature: dict[str, float]) -> dict[str, Any]:
    """Returns the content of `config.json` that describes the folder's files."""
    return {
        "name": name,
        "version": version,
        "layout": "shared-state",
        "temperature": temperature,
        "chunk": layout.CHUNK,
        "head_max": layout.HEAD_MAX,
        "option_max": layout.OPTION_MAX,
        "state_max": layout.STATE_MAX,
        "run_tokens": layout.RUN_TOKENS,
        "head_prefix": layout.HEAD_PREFIX,
        "type_ids": layout.TYPE_IDS,
        "special_ids": {"cls": layout.CLS, "sep": layout.SEP, "pad": layout.PAD, "mask": layout.MASK},
        "layers": LAYERS,
        "heads": HEADS,
        "head_dim": HEAD_DIM,
        "sha256": digest(folder / "model.onnx"),
        "files": {"tokenizer.json": digest(folder / "tokenizer.json")},
    }


def write_folder(
    folder: Path,
    graph: onnx.ModelProto,
    name: str,
    version: str,
    temperature: dict[str, float],
    more: dict[str, Any] | None = None,
) -> None:
    """Writes graph, tokenizer, config and reference answers; `more` holds further entries of config.json about the
    answers."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, str(folder / "model.onnx"))
    tokenizer = json.loads((layout.base_folder() / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer |= {"truncation": None, "padding": None}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    config = make_config(folder, name, version, temperature) | (more or {})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    write_golden(folder)


def write_golden(folder: Path) -> None:
    """Writes the reference answers of a folder whose other files already exist."""
    served = Folder(folder)
    lines = [json.dumps(served.golden(*request), ensure_ascii=False, separators=(",", ":")) for request in requests()]
    (folder / "golden.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def temperatures(folder: Path) -> dict[str, float]:
    """Returns the temperature of each type, as `calibrate` fitted it or as a model folder has it; 1 if there is
    neither."""
    paths = [path for path in (folder / CALIBRATION, folder / "config.json") if path.exists()]
    return (
        json.loads(paths[0].read_text(encoding="utf-8"))["temperature"]
        if paths
        else dict.fromkeys(layout.TYPE_IDS, 1.0)
    )


def by_form(folder: Path) -> dict[str, Any]:
    """Returns the other fitted values besides the temperatures of the types: those of `calibrate` or of a model
    folder."""
    path = next((path for path in (folder / CALIBRATION, folder / "config.json") if path.exists()), None)
    found = json.loads(path.read_text(encoding="utf-8")) if path else {}
    return {name: found[name] for name in ("temperature_by_options", "bias") if any(found.get(name, {}).values())}


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
    return ranges_of(inputs_of(model, sample(list(read_rows(args.rows / HELD_OUT)), args.samples)), args.percentile)


def run(args: argparse.Namespace) -> None:
    """Writes the folder; fails if the graph is larger than the limit for a shipped model."""
    model = load_model(args.checkpoint).eval()
    ranges = None if args.fp32 else input_ranges(model, args)
    beside = args.calibration or (args.checkpoint if args.checkpoint.is_dir() else args.checkpoint.parent)
    graph = build(model, ranges, args.weight_bits)
    if args.checkpoint.is_dir() and ranges is not None and args.weight_bits == 8:
        keep_integers(graph, args.checkpoint, inputs=not args.ranges)
    write_folder(
        args.out, graph, args.name, args.version, temperatures(beside), by_form(beside) if args.by_form else None
    )
    size = (args.out / "model.onnx").stat().st_size
    print(f"{args.out}: {size / 1e6:.2f} MB")
    if size > MAX_BYTES and not args.fp32:
        raise SystemExit(f"{args.out / 'model.onnx'}: {size} bytes; at most {MAX_BYTES} are shipped")
