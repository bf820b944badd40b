"""The figures of a set of answers: accuracy and calibration, the quality of the order and the threshold of yes/no
answers, and the accuracy among sixteen options."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np

from ..calibration import metrics
from ..data.rows import Row, label_index, option_count
from ..data.wording import NONE_NAMES

# Sets that are used only once for each model that is to be shipped, and never to choose a model. All others are for
# choosing.
JUDGED = frozenset({"hatecheck", "finentity", "deepset_pi_train", "isarcasm_A_en", "infotabs_alpha2", "mmlu_test"})
CANDIDATES = 16
NONE = frozenset(name.lower() for name in NONE_NAMES) | {"no_nodes_detected"}


def summary(rows: list[Row], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns a set's figures."""
    right, confidence = (np.array([one[name] for one in found]) for name in ("right", "confidence"))
    figures: dict[str, Any] = {
        "rows": len(rows),
        "accuracy": right.mean(),
        "interval": metrics.interval(int(right.sum()), len(rows)),
        "majority": Counter(str(row.label) for row in rows).most_common(1)[0][1] / len(rows),
        "random": float(np.mean([1 / option_count(row.question) for row in rows])),
        "loss": float(np.mean([one["loss"] for one in found])),
        "calibration_error": metrics.calibration_error(confidence, right),
        "right": "".join(str(int(one)) for one in right),
        **threshold_figures(rows, found),
        **among_candidates(rows, [one["logits"] for one in found]),
    }
    return {**figures, "removed_by_probability": metrics.errors_removed(confidence, right), **act_figures(found, right)}


def act_figures(found: list[dict[str, Any]], right: metrics.Array) -> dict[str, float]:
    """Returns the gain from abstaining by the act head, or nothing if the graph has no act head."""
    if any(one["act"] is None for one in found):
        return {}
    return {"removed_by_act": metrics.errors_removed(np.array([one["act"] for one in found]), right)}


def threshold_figures(rows: list[Row], found: list[dict[str, Any]]) -> dict[str, float]:
    """Returns figures of the yes/no rows: the area under the curve, the accuracy at the best threshold, and how often
    yes is said and right."""
    margins = np.array(
        [one["logits"][1] - one["logits"][0] for row, one in zip(rows, found) if row.question["type"] == "noul"]
    )
    labels = np.array([bool(row.label) for row in rows if row.question["type"] == "noul"])
    if not len(labels) or labels.all() or not labels.any():
        return {}
    best, at = metrics.best_threshold(margins, labels)
    return {
        "area": metrics.area_under_curve(margins, labels),
        "best_threshold_accuracy": best,
        "best_threshold": at,
        "yes_said": float((margins > 0).mean()),
        "yes_right": float(labels.mean()),
    }


def drawn(row: Row, place: int) -> list[int]:
    """Returns the indices of the right option and of fifteen others, which are drawn with the row's place in its set as
    the seed."""
    right = label_index(row.question, row.label)
    others = [i for i in range(option_count(row.question)) if i != right]
    return [right, *Random(place).sample(others, CANDIDATES - 1)]


def among_candidates(rows: list[Row], scores: list[metrics.Array]) -> dict[str, float]:
    """Returns the accuracy among sixteen options for choices that have more; this is possible because an option's logit
    does not depend on the others."""
    longer = [
        i for i, row in enumerate(rows) if row.question["type"] == "choice" and option_count(row.question) > CANDIDATES
    ]
    if not longer:
        return {}
    right = [int(scores[i][drawn(rows[i], i)].argmax() == 0) for i in longer]
    return {"among_16": float(np.mean(right)), **without_none(rows, scores)}


def without_none(rows: list[Row], scores: list[metrics.Array]) -> dict[str, float]:
    """Returns the accuracy on the rows that one of the named options fits, without "none of these": it measures only
    the knowledge of meaning."""
    right = []
    for row, own in zip(rows, scores):
        kept = [i for i, name in enumerate(row.question["criteria"]) if name.lower() not in NONE]
        if len(kept) < len(own) and row.label.lower() not in NONE:
            right.append(int(kept[own[kept].argmax()] == label_index(row.question, row.label)))
    return {"without_none": float(np.mean(right))} if right else {}


def together(sets: dict[str, Any], found: list[dict[str, Any]], calibrated_from: int = 500) -> dict[str, Any]:
    """Returns the means over the sets, and calibration and abstention over all rows."""
    right, confidence = (np.array([one[name] for one in found]) for name in ("right", "confidence"))
    large = [one["calibration_error"] for one in sets.values() if one["rows"] >= calibrated_from]
    figures = {
        "mean_accuracy": float(np.mean([one["accuracy"] for one in sets.values()])),
        "mean_calibration_error": float(np.mean(large)) if large else None,
        "bins": metrics.bins(confidence, right),
        "coverage": metrics.coverage(confidence, right),
        "removed_by_probability": metrics.errors_removed(confidence, right),
        **act_figures(found, right),
    }
    if "removed_by_act" in figures:
        figures["coverage_by_act"] = metrics.coverage(np.array([one["act"] for one in found]), right)
    return figures
