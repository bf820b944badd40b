"""`evaluate`: measures a model folder's accuracy, its calibration, and whether its answers fit together."""

import argparse
import json
from pathlib import Path

from ..data.rows import HELD_OUT, read_rows
from ..evaluate.answers import Results, Sets, compared, evaluate_cosine, evaluate_sets
from ..evaluate.battery import battery
from ..evaluate.coherence import coherence
from ..evaluate.jevbench import jevbench
from ..evaluate.needle import needle
from ..evaluate.probes import identity_bias, known_cases
from ..folder.reader import Folder, digest

PARTS = ("sets", "cosine", "coherence", "needle", "bias", "cases", "battery")
HALVES = ("choosing", "judged", "both")
# The cases of each kind of coherence, unless the rows are limited.
COHERENCE_CASES = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="the model folder")
    parser.add_argument("--data", type=Path, help="folder with dev/*.jsonl.gz")
    parser.add_argument(
        "--rows", type=Path, help="folder that `data` wrote: coherence is measured on its held-out rows"
    )
    parser.add_argument("--out", type=Path, required=True, help="the results, as JSON")
    parser.add_argument("--against", type=Path, help="results of another folder on the same rows")
    parser.add_argument("--sets", nargs="+", help="only these sets (default: all)")
    parser.add_argument(
        "--half",
        choices=HALVES,
        default="choosing",
        help="the sets to choose by, those that are looked at once for what would be shipped, or both "
        "(default: %(default)s)",
    )
    parser.add_argument("--limit", type=int, help="at most so many rows of each set, for a quick look")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--jevbench",
        type=Path,
        metavar="SVC",
        help="run JevBench against the folder as this bin/svc.js serves it; `pip install jevbench==0.1.0`",
    )


def run(args: argparse.Namespace) -> None:
    """Writes the results."""
    results = measured(args)
    if args.against and "sets" in results:
        results["against"] = compared(results, json.loads(args.against.read_text()))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if "together" in results:
        mean, error = results["together"]["mean_accuracy"], results["together"]["mean_calibration_error"]
        print(f"mean accuracy {mean:.4f}, mean calibration error {error}")


def measured(args: argparse.Namespace) -> Results:
    """Returns the results of the parts that are asked for."""
    folder, graph = Folder(args.folder, args.threads), args.folder / "model.onnx"
    results: Results = {
        "name": folder.config["name"],
        "version": folder.config["version"],
        "temperature": folder.config["temperature"],
        "sha256": digest(graph),
        "bytes": graph.stat().st_size,
    }
    if args.data:
        wanted = Sets(args.data, args.half, args.sets, args.limit)
        if "sets" in args.parts:
            found = evaluate_sets(folder, wanted)
            results["sets"], results["together"] = found["sets"], found["together"]
        if "cosine" in args.parts:
            results["cosine"] = evaluate_cosine(wanted)
    if "coherence" in args.parts:
        held_out = list(read_rows(args.rows / HELD_OUT)) if args.rows else []
        results["coherence"] = coherence(folder, held_out, args.limit or COHERENCE_CASES)
    if "needle" in args.parts:
        results["needle"] = needle(folder)
    if "bias" in args.parts:
        results["bias"] = identity_bias(folder)
    if "cases" in args.parts:
        results["cases"] = known_cases(folder)
    if "battery" in args.parts:
        results["battery"] = battery(folder)
    if args.jevbench:
        results["jevbench"] = jevbench(args.folder, args.jevbench)
    return results
