"""`evaluate`: measures a model folder's accuracy, its calibration, and whether its answers fit together."""

import argparse
import json
from pathlib import Path
from typing import cast

from ..data.files import object_in
from ..data.rows import HELD_OUT, read_rows
from ..evaluate.answers import Results, Sets, compared, evaluate_cosine, evaluate_sets
from ..evaluate.battery import battery
from ..evaluate.coherence import coherence
from ..evaluate.jevbench import check_jevbench, jevbench
from ..evaluate.needle import needle
from ..evaluate.probes import identity_bias, known_cases
from ..folder.reader import Folder, digest
from .values import whole

PARTS = ("sets", "cosine", "coherence", "needle", "bias", "cases", "battery")
# The parts that need a folder, and the option that names it.
NEEDS = {"sets": "data", "cosine": "data", "coherence": "rows"}
JEVBENCH = "jevbench"
HALVES = ("choosing", "judged", "both")
# The cases of each kind of coherence, unless the rows are limited.
COHERENCE_CASES = 150
LIMIT_HELP = "for a quick look: at most so many rows of each set, and so many sentences about identities of each kind"


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
    parser.add_argument("--limit", type=whole(1), help=LIMIT_HELP)
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, help="what to measure (default: all that --data and --rows allow)"
    )
    parser.add_argument("--threads", type=whole(0), default=1)
    parser.add_argument(
        "--jevbench",
        type=Path,
        metavar="SVC",
        help="run JevBench against the folder as this bin/svc.js serves it; `pip install jevbench==0.1.0`",
    )


def run(args: argparse.Namespace) -> None:
    """Writes the results, after each part those that there are, so that an error in a later one loses nothing."""
    parts = parts_of(args)
    other = results_in(args.against) if args.against else None
    if args.jevbench:
        check_jevbench(args.jevbench)
    folder, graph = Folder(args.folder, args.threads), args.folder / "model.onnx"
    results: Results = {
        "name": folder.config["name"],
        "version": folder.config["version"],
        "temperature": folder.config["temperature"],
        "sha256": digest(graph),
        "bytes": graph.stat().st_size,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for part in parts:
        measure(part, folder, args, results)
        if part == "sets" and other is not None:
            results["against"] = compared(results, other)
        args.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if "together" in results:
        mean, error = results["together"]["mean_accuracy"], results["together"]["mean_calibration_error"]
        print(f"mean accuracy {mean:.4f}, mean calibration error {error}")


def parts_of(args: argparse.Namespace) -> list[str]:
    """Returns the parts to measure, JevBench last; raises ValueError if one that is asked for needs a folder that no
    option names."""
    missing = {part: folder for part, folder in NEEDS.items() if getattr(args, folder) is None}
    for part in args.parts or ():
        if part in missing:
            raise ValueError(f"--parts {part} needs --{missing[part]}")
    asked = args.parts or [part for part in PARTS if part not in missing]
    return [*(part for part in PARTS if part in asked), *([JEVBENCH] if args.jevbench else [])]


def results_in(path: Path) -> Results:
    """Returns the results in a file; raises ValueError if it holds no results with sets."""
    found = object_in(path)
    if not {"name", "version", "sets", "together"} <= found.keys():
        raise ValueError(f"{path}: no results of `evaluate` with sets")
    return cast(Results, found)


def measure(part: str, folder: Folder, args: argparse.Namespace, results: Results) -> None:
    """Adds a part to the results."""
    wanted = Sets(args.data, args.half, args.sets, args.limit)
    if part == "sets":
        found = evaluate_sets(folder, wanted)
        results["sets"], results["together"] = found["sets"], found["together"]
    elif part == "cosine":
        results["cosine"] = evaluate_cosine(wanted)
    elif part == "coherence":
        held_out = list(read_rows(args.rows / HELD_OUT))
        results["coherence"] = coherence(folder, held_out, args.limit or COHERENCE_CASES)
    elif part == "needle":
        results["needle"] = needle(folder)
    elif part == "bias":
        results["bias"] = identity_bias(folder, args.limit)
    elif part == "cases":
        results["cases"] = known_cases(folder)
    elif part == "battery":
        results["battery"] = battery(folder)
    elif part == JEVBENCH:
        results["jevbench"] = jevbench(args.folder, args.jevbench)
