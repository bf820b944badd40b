"""The figures of a set of answers: accuracy and calibration, the quality of the order and the threshold of yes/no
answers, and the accuracy among sixteen options."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import NotRequired, TypedDict

import numpy as np

from ..calibration import metrics
from ..data.question import label_index, option_count
from ..data.rows import Row
from ..data.wording import NONE_NAMES

# Sets that are used only once for each model that is to be shipped, and never to choose a model. All others are for
# choosing.
JUDGED = frozenset({"hatecheck", "finentity", "deepset_pi_train", "isarcasm_A_en", "infotabs_alpha2", "mmlu_test"})
CANDIDATES = 16
# Sets with fewer rows say little about calibration.
CALIBRATED_FROM = 500
# The smallest probability in a loss.
SMALLEST = 1e-12
NONE = frozenset(name.lower() for name in NONE_NAMES) | {"no_nodes_detected"}


@dataclass(frozen=True)
class Judged:
    """An answer to a row: whether it is right, its probability, that of the act head (None if there is none), the loss,
    and the logits."""

    right: bool
    confidence: float
    act: float | None
    loss: float
    logits: metrics.Array


class Figures(TypedDict):
    """The figures of a set; `right` has a 1 or a 0 for each row."""

    rows: int
    accuracy: float
    interval: tuple[float, float]
    majority: float
    random: float
    loss: float
    calibration_error: float
    right: str
    removed_by_probability: float
    area: NotRequired[float]
    best_threshold_accuracy: NotRequired[float]
    best_threshold: NotRequired[float]
    yes_said: NotRequired[float]
    yes_right: NotRequired[float]
    among_16: NotRequired[float]
    without_none: NotRequired[float]
    removed_by_act: NotRequired[float]


class Together(TypedDict):
    """The means over sets, and calibration and abstention over all of their rows."""

    mean_accuracy: float
    mean_calibration_error: float | None
    bins: list[tuple[float, float, int]]
    coverage: list[tuple[float, float]]
    removed_by_probability: float
    removed_by_act: NotRequired[float]
    coverage_by_act: NotRequired[list[tuple[float, float]]]


def judged(row: Row, logits: metrics.Array, temperature: float = 1.0, act: float | None = None) -> Judged:
    """Returns the answer that logits give."""
    label, p = label_index(row.question, row.label), metrics.softmax(logits, temperature)
    loss = -float(np.log(max(p[label], SMALLEST)))
    return Judged(bool(logits.argmax() == label), float(p.max()), act, loss, logits)


def right_and_confidence(found: list[Judged]) -> tuple[metrics.Array, metrics.Array]:
    """Returns 1 for each right answer and 0 for the others, and the answers' probabilities."""
    return np.array([float(one.right) for one in found]), np.array([one.confidence for one in found])


def summary(rows: list[Row], found: list[Judged]) -> Figures:
    """Returns a set's figures."""
    right, confidence = right_and_confidence(found)
    figures: Figures = {
        "rows": len(rows),
        "accuracy": right.mean(),
        "interval": metrics.interval(int(right.sum()), len(rows)),
        "majority": Counter(str(row.label) for row in rows).most_common(1)[0][1] / len(rows),
        "random": float(np.mean([1 / option_count(row.question) for row in rows])),
        "loss": float(np.mean([one.loss for one in found])),
        "calibration_error": metrics.calibration_error(confidence, right),
        "right": "".join(str(int(one)) for one in right),
        "removed_by_probability": metrics.errors_removed(confidence, right),
    }
    add_threshold_figures(figures, rows, found)
    add_candidate_figures(figures, rows, [one.logits for one in found])
    acts = acts_of(found)
    if acts is not None:
        figures["removed_by_act"] = metrics.errors_removed(acts, right)
    return figures


def acts_of(found: list[Judged]) -> metrics.Array | None:
    """Returns the probabilities of the act head, or None if the graph has no act head."""
    acts = [one.act for one in found if one.act is not None]
    return np.array(acts) if len(acts) == len(found) else None


def add_threshold_figures(figures: Figures, rows: list[Row], found: list[Judged]) -> None:
    """Adds figures of the yes/no rows: the area under the curve, the accuracy at the best threshold, and how often yes
    is said and right."""
    nouls = [(row, one.logits) for row, one in zip(rows, found) if row.question["type"] == "noul"]
    margins = np.array([logits[1] - logits[0] for _, logits in nouls])
    labels = np.array([bool(row.label) for row, _ in nouls])
    if not len(labels) or labels.all() or not labels.any():
        return
    best, at = metrics.best_threshold(margins, labels)
    figures["area"] = metrics.area_under_curve(margins, labels)
    figures["best_threshold_accuracy"], figures["best_threshold"] = best, at
    figures["yes_said"], figures["yes_right"] = float((margins > 0).mean()), float(labels.mean())


def drawn(row: Row, place: int) -> list[int]:
    """Returns the indices of the right option and of fifteen others, which are drawn with the row's place in its set as
    the seed."""
    right = label_index(row.question, row.label)
    others = [i for i in range(option_count(row.question)) if i != right]
    return [right, *Random(place).sample(others, CANDIDATES - 1)]


class AmongCandidates(TypedDict):
    """The accuracy among sixteen options, and without "none of these"."""

    among_16: NotRequired[float]
    without_none: NotRequired[float]


def among_candidates(rows: list[Row], scores: list[metrics.Array]) -> AmongCandidates:
    """Returns the accuracy among sixteen options for choices that have more; this is possible because an option's logit
    does not depend on the others."""
    longer = [
        i for i, row in enumerate(rows) if row.question["type"] == "choice" and option_count(row.question) > CANDIDATES
    ]
    if not longer:
        return {}
    right = [int(scores[i][drawn(rows[i], i)].argmax() == 0) for i in longer]
    found: AmongCandidates = {"among_16": float(np.mean(right))}
    without = without_none(rows, scores)
    if without is not None:
        found["without_none"] = without
    return found


def add_candidate_figures(figures: Figures, rows: list[Row], scores: list[metrics.Array]) -> None:
    """Adds the accuracy among sixteen options, and without "none of these", for choices that have more options."""
    found = among_candidates(rows, scores)
    if "among_16" in found:
        figures["among_16"] = found["among_16"]
    if "without_none" in found:
        figures["without_none"] = found["without_none"]


def without_none(rows: list[Row], scores: list[metrics.Array]) -> float | None:
    """Returns the accuracy on the rows that one of the named options fits, without "none of these": it measures only
    the knowledge of meaning. None if there are no such rows."""
    right = []
    for row, own in zip(rows, scores):
        if row.question["type"] != "choice":
            continue
        kept = [i for i, name in enumerate(row.question["criteria"]) if name.lower() not in NONE]
        if len(kept) < len(own) and str(row.label).lower() not in NONE:
            right.append(int(kept[own[kept].argmax()] == label_index(row.question, row.label)))
    return float(np.mean(right)) if right else None


def means(sets: Collection[Figures], calibrated_from: int = CALIBRATED_FROM) -> tuple[float, float | None]:
    """Returns the mean accuracy of the sets, and the mean calibration error of those with enough rows, or None if there
    are none."""
    large = [one["calibration_error"] for one in sets if one["rows"] >= calibrated_from]
    return float(np.mean([one["accuracy"] for one in sets])), float(np.mean(large)) if large else None


def together(sets: dict[str, Figures], found: list[Judged], calibrated_from: int = CALIBRATED_FROM) -> Together:
    """Returns the means over the sets, and calibration and abstention over all rows."""
    right, confidence = right_and_confidence(found)
    accuracy, error = means(sets.values(), calibrated_from)
    figures: Together = {
        "mean_accuracy": accuracy,
        "mean_calibration_error": error,
        "bins": metrics.bins(confidence, right),
        "coverage": metrics.coverage(confidence, right),
        "removed_by_probability": metrics.errors_removed(confidence, right),
    }
    acts = acts_of(found)
    if acts is not None:
        figures["removed_by_act"] = metrics.errors_removed(acts, right)
        figures["coverage_by_act"] = metrics.coverage(acts, right)
    return figures
