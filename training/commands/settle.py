"""`settle`: finds scales of the int8 inputs with which the reference requests are answered alike on every processor."""

import argparse
import json
import shutil
from pathlib import Path

import onnx

from ..data.files import object_in
from ..folder.golden import requests
from ..folder.reader import digest
from ..folder.writer import write_golden
from ..quantize.processors import Here, Runner
from ..quantize.segments import quantized
from ..quantize.settling import record, settle
from .values import version, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="an int8 model folder")
    parser.add_argument("--out", type=Path, required=True, help="the settled model folder")
    parser.add_argument(
        "--runner",
        action="append",
        default=[],
        metavar="COMMAND",
        help="runs a graph on another processor, such as 'env ... node training/runner.mjs'; again for each",
    )
    parser.add_argument("--version", type=version, help="of the settled folder (default: that of --folder)")
    parser.add_argument(
        "--at-once", type=whole(1), default=2, help="commands that run at a time (default: %(default)s)"
    )


def write_settled(args: argparse.Namespace, model: onnx.ModelProto) -> None:
    """Writes the folder with another graph and its reference answers."""
    args.out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(args.out / "model.onnx"))
    config = object_in(args.folder / "config.json") | {"sha256": digest(args.out / "model.onnx")}
    config |= {"version": args.version} if args.version else {}
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(args.folder / "tokenizer.json", args.out / "tokenizer.json")
    write_golden(args.out)


def run(args: argparse.Namespace) -> None:
    """Writes the settled folder with its reference answers, and prints how many scales were changed and the largest
    change."""
    recorded, model = record(args.folder, requests()), onnx.load(str(args.folder / "model.onnx"))
    print(f"{len(recorded.inputs)} runs, {sum(len(run['input_ids']) for run in recorded.inputs)} tokens", flush=True)
    changes = settle(model, recorded, [Here(), *map(Runner, args.runner)], args.at_once)
    write_settled(args, model)
    most = max(map(abs, changes.values()), default=0)
    print(f"{args.out}: {len(changes)} of {len(quantized(model))} scales changed, by {100 * most:.2f} % at most")
