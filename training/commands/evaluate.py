"""`evaluate`: measures a model folder's accuracy, its calibration, and whether its answers fit together."""

import argparse
import json
from pathlib import Path
from random import Random
from typing import Any, Iterator

import numpy as np
from tqdm import tqdm

from ..calibration import metrics
from ..evaluate.coherence import coherence
from .data import HELD_OUT
from ..evaluate.figures import JUDGED, among_candidates, summary, together
from ..calibration.fitting import applied
from ..folder.reader import Folder, digest
from ..evaluate.jevbench import jevbench
from ..data.layout import state_text
from ..evaluate.needle import needle
from ..evaluate.probes import identity_bias, known_cases
from ..similarity.likeness import cosines_of
from ..data.rows import Row, label_index, read_rows, state_key

PARTS = ("sets", "cosine", "coherence", "needle", "bias", "cases")
HALVES = ("choosing", "judged", "both")


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
        help="the sets to choose by, those that are looked at once for what would be shipped, or both (default: %(default)s)",
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


def answers(folder: Folder, rows: list[Row], name: str) -> list[dict[str, Any]]:
    """Returns for each row whether the top answer is right, its probability, the act probability and the loss."""
    found: list[dict[str, Any]] = [{}] * len(rows)
    # Rows about one state come after each other, so that the state is read only once.
    for i in tqdm(
        sorted(range(len(rows)), key=lambda i: state_key(rows[i].state)), desc=name, mininterval=5, leave=False
    ):
        question, label = rows[i].question, label_index(rows[i].question, rows[i].label)
        logits, act, _ = folder.ask(state_text(rows[i].state), question)
        logits, temperature = applied(folder.config, question, logits)
        p = metrics.softmax(logits, temperature)
        found[i] = {
            "right": float(logits.argmax() == label),
            "confidence": float(p.max()),
            "act": act,
            "loss": -float(np.log(max(p[label], 1e-12))),
            "logits": logits,
        }
    return found


def rows_of_sets(args: argparse.Namespace) -> Iterator[tuple[str, list[Row]]]:
    """Yields the requested sets with their rows."""
    wanted = {path.name.split(".")[0]: path for path in sorted((args.data / "dev").glob("*.jsonl*"))}
    wanted = {
        name: path
        for name, path in wanted.items()
        if (name in args.sets if args.sets else args.half == "both" or (args.half == "judged") == (name in JUDGED))
    }
    if not wanted:
        raise FileNotFoundError(f"{args.data}: no dev/*.jsonl or dev/*.jsonl.gz that is asked for")
    for name, path in wanted.items():
        rows = list(read_rows(path))
        # The rows are drawn at random and not every n-th is taken, because some files have their labels in turn.
        yield name, Random(5).sample(rows, args.limit) if args.limit and args.limit < len(rows) else rows


def evaluate_sets(folder: Folder, args: argparse.Namespace) -> dict[str, Any]:
    """Returns every set's figures, and those of all rows together."""
    sets, all_found = {}, []
    for name, rows in rows_of_sets(args):
        found = answers(folder, rows, name)
        sets[name], all_found = summary(rows, found), all_found + found
        print(
            f"{name}: {sets[name]['accuracy']:.3f} of {len(rows)}, calibration error {sets[name]['calibration_error']:.3f}",
            flush=True,
        )
    return {"sets": sets, "together": together(sets, all_found)}


def evaluate_cosine(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the accuracy of the untrained base model on choices, by its cosines of the text and each option."""
    found = {}
    for name, rows in rows_of_sets(args):
        if all(row.question["type"] == "choice" for row in rows):
            scores = cosines_of(rows)
            right = sum(
                int(row_scores.argmax() == label_index(row.question, row.label))
                for row, row_scores in zip(rows, scores)
            )
            found[name] = {"accuracy": right / len(rows), **among_candidates(rows, scores)}
    return found


def compared(results: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Returns each set's accuracy together with another folder's on the same rows."""
    table = {}
    for name, own in results.get("sets", {}).items():
        theirs = other["sets"].get(name)
        if theirs and len(theirs["right"]) == len(own["right"]):
            gained = sum(a > b for a, b in zip(own["right"], theirs["right"]))
            lost = sum(a < b for a, b in zip(own["right"], theirs["right"]))
            table[name] = {
                "accuracy": theirs["accuracy"],
                "interval": theirs["interval"],
                "calibration_error": theirs["calibration_error"],
                "gained": gained,
                "lost": lost,
            }
    return {
        "name": f"{other['name']} {other['version']}",
        "sets": table,
        "mean_calibration_error": other["together"]["mean_calibration_error"],
    }


def run(args: argparse.Namespace) -> None:
    """Writes the results."""
    folder = Folder(args.folder, args.threads)
    results: dict[str, Any] = {name: folder.config[name] for name in ("name", "version", "temperature")}
    results |= {"sha256": digest(args.folder / "model.onnx"), "bytes": (args.folder / "model.onnx").stat().st_size}
    if "sets" in args.parts and args.data:
        results |= evaluate_sets(folder, args)
    if "cosine" in args.parts and args.data:
        results["cosine"] = evaluate_cosine(args)
    if "coherence" in args.parts:
        held_out = list(read_rows(args.rows / HELD_OUT)) if args.rows else []
        results["coherence"] = coherence(folder, held_out, args.limit or 150)
    for name, part in (("needle", needle), ("bias", identity_bias), ("cases", known_cases)):
        if name in args.parts:
            results[name] = part(folder)
    if args.jevbench:
        results["jevbench"] = jevbench(args.folder, args.jevbench)
    if args.against and "sets" in results:
        results["against"] = compared(results, json.loads(args.against.read_text()))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if "sets" in results:
        print(
            f"mean accuracy {results['together']['mean_accuracy']:.4f}, mean calibration error {results['together']['mean_calibration_error']}"
        )
