"""`evaluate`: what a model folder gets right, how well it knows it, and whether its answers fit together."""
import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tqdm import tqdm

from . import metrics
from .coherence import coherence
from .data import HELD_OUT
from .folder import Folder, digest
from .layout import state_text
from .needle import needle
from .probes import identity_bias, known_cases
from .rows import Row, label_index, option_count, read_rows, state_key

PARTS = ("sets", "coherence", "needle", "bias", "cases")
CALIBRATED_FROM = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="the model folder")
    parser.add_argument("--data", type=Path, help="folder with dev/*.jsonl.gz")
    parser.add_argument("--rows", type=Path, help="folder that `data` wrote: coherence is measured on its held-out rows")
    parser.add_argument("--out", type=Path, required=True, help="the results, as JSON")
    parser.add_argument("--against", type=Path, help="results of another folder on the same rows")
    parser.add_argument("--sets", nargs="+", help="only these sets (default: all)")
    parser.add_argument("--limit", type=int, help="at most so many rows of each set, for a quick look")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, default=1)


def answers(folder: Folder, rows: list[Row], name: str) -> list[dict[str, Any]]:
    """For each row whether the top answer is right, its probability, the act probability and the loss."""
    found: list[dict[str, Any]] = [{}] * len(rows)
    # Rows of one state after each other: it is read once.
    for i in tqdm(sorted(range(len(rows)), key=lambda i: state_key(rows[i].state)), desc=name, mininterval=5, leave=False):
        question, label = rows[i].question, label_index(rows[i].question, rows[i].label)
        logits, act, _ = folder.ask(state_text(rows[i].state), question)
        p = metrics.softmax(logits, folder.config["temperature"][question["type"]])
        found[i] = {"right": float(logits.argmax() == label), "confidence": float(p.max()), "act": act, "loss": -float(np.log(max(p[label], 1e-12)))}
    return found


def summary(rows: list[Row], found: list[dict[str, Any]]) -> dict[str, Any]:
    """A set's figures."""
    right, confidence = (np.array([one[name] for one in found]) for name in ("right", "confidence"))
    figures: dict[str, Any] = {
        "rows": len(rows), "accuracy": right.mean(), "interval": metrics.interval(int(right.sum()), len(rows)),
        "majority": Counter(str(row.label) for row in rows).most_common(1)[0][1] / len(rows),
        "random": float(np.mean([1 / option_count(row.question) for row in rows])),
        "loss": float(np.mean([one["loss"] for one in found])), "calibration_error": metrics.calibration_error(confidence, right),
        "right": "".join(str(int(one)) for one in right),
    }
    return {**figures, "removed_by_probability": metrics.errors_removed(confidence, right), **act_figures(found, right)}


def act_figures(found: list[dict[str, Any]], right: metrics.Array) -> dict[str, float]:
    """What abstaining by the act head gives; nothing where the graph has none."""
    if any(one["act"] is None for one in found):
        return {}
    return {"removed_by_act": metrics.errors_removed(np.array([one["act"] for one in found]), right)}


def evaluate_sets(folder: Folder, data: Path, names: list[str] | None, limit: int | None) -> dict[str, Any]:
    """Every set's figures, and those of all rows together."""
    files = [path for path in sorted((data / "dev").glob("*.jsonl*")) if not names or path.name.split(".")[0] in names]
    if not files:
        raise FileNotFoundError(f"{data}: no dev/*.jsonl or dev/*.jsonl.gz")
    sets, all_found = {}, []
    for path in files:
        name = path.name.split(".")[0]
        rows = list(read_rows(path))
        # Drawn, not every n-th: some files have their labels in turn.
        rows = Random(5).sample(rows, limit) if limit and limit < len(rows) else rows
        found = answers(folder, rows, name)
        sets[name], all_found = summary(rows, found), all_found + found
        print(f"{name}: {sets[name]['accuracy']:.3f} of {len(rows)}, calibration error {sets[name]['calibration_error']:.3f}", flush=True)
    return {"sets": sets, "together": together(sets, all_found)}


def together(sets: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the sets, and calibration and abstention over all rows."""
    right, confidence = (np.array([one[name] for one in found]) for name in ("right", "confidence"))
    large = [one["calibration_error"] for one in sets.values() if one["rows"] >= CALIBRATED_FROM]
    figures = {
        "mean_accuracy": float(np.mean([one["accuracy"] for one in sets.values()])), "mean_calibration_error": float(np.mean(large)) if large else None,
        "bins": metrics.bins(confidence, right), "coverage": metrics.coverage(confidence, right),
        "removed_by_probability": metrics.errors_removed(confidence, right), **act_figures(found, right)}
    if "removed_by_act" in figures:
        figures["coverage_by_act"] = metrics.coverage(np.array([one["act"] for one in found]), right)
    return figures


def compared(results: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Each set's accuracy beside another folder's on the same rows."""
    table = {}
    for name, own in results.get("sets", {}).items():
        theirs = other["sets"].get(name)
        if theirs and len(theirs["right"]) == len(own["right"]):
            gained = sum(a > b for a, b in zip(own["right"], theirs["right"]))
            lost = sum(a < b for a, b in zip(own["right"], theirs["right"]))
            table[name] = {"accuracy": theirs["accuracy"], "interval": theirs["interval"], "calibration_error": theirs["calibration_error"], "gained": gained, "lost": lost}
    return {"name": f"{other['name']} {other['version']}", "sets": table, "mean_calibration_error": other["together"]["mean_calibration_error"]}


def run(args: argparse.Namespace) -> None:
    """Writes the results."""
    folder = Folder(args.folder, args.threads)
    results: dict[str, Any] = {name: folder.config[name] for name in ("name", "version", "temperature")}
    results |= {"sha256": digest(args.folder / "model.onnx"), "bytes": (args.folder / "model.onnx").stat().st_size}
    if "sets" in args.parts and args.data:
        results |= evaluate_sets(folder, args.data, args.sets, args.limit)
    if "coherence" in args.parts:
        held_out = list(read_rows(args.rows / HELD_OUT)) if args.rows else []
        results["coherence"] = coherence(folder, held_out, args.limit or 150)
    for name, part in (("needle", needle), ("bias", identity_bias), ("cases", known_cases)):
        if name in args.parts:
            results[name] = part(folder)
    if args.against and "sets" in results:
        results["against"] = compared(results, json.loads(args.against.read_text()))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if "sets" in results:
        print(f"mean accuracy {results['together']['mean_accuracy']:.4f}, mean calibration error {results['together']['mean_calibration_error']}")
