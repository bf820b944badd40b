"""The figures of a set of answers: accuracy and calibration, the quality of the order and the threshold of yes/no
answers, and the accuracy among sixteen options."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from random import Random
from typing import NotRequired, TypedDict

import numpy as np

from ..calibration import metrics
from ..data.question import choice, label_index, option_count
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
# Returns the logits of each row's options.
Ask = Callable[[list[Row]], list[metrics.Array]]


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


def among_candidates(rows: list[Row], ask: Ask) -> AmongCandidates:
    """Returns the accuracy among sixteen options for choices that have more, and the accuracy without "none of these"
    on rows that one of the named options fits, which measures only the knowledge of meaning.

    The rows are asked again, because the logit of "none of these" depends on the number of options.
    """
    longer = [fewer(row, drawn(row, i)) for i, row in enumerate(rows) if has_options(row, CANDIDATES + 1)]
    named = [fewer(row, named_options(row)) for row in rows if has_options(row, 2) and offers_none(row)]
    found: AmongCandidates = {}
    if longer:
        found["among_16"] = accuracy_of(longer, ask)
    if named:
        found["without_none"] = accuracy_of(named, ask)
    return found


def has_options(row: Row, least: int) -> bool:
    """Whether a row's question is a choice with so many options or more."""
    return row.question["type"] == "choice" and option_count(row.question) >= least


def named_options(row: Row) -> list[int]:
    """Returns the indices of the options that do not mean "none of these"."""
    return [i for i, name in enumerate(row.question["criteria"]) if name.lower() not in NONE]


def offers_none(row: Row) -> bool:
    """Whether a choice offers "none of these" and another option is right."""
    return len(named_options(row)) < option_count(row.question) and str(row.label).lower() not in NONE


def fewer(row: Row, kept: list[int]) -> Row:
    """Returns a choice with some of its options, in their order."""
    if row.question["type"] != "choice":
        raise ValueError(f"{row.source}: a {row.question['type']} has no options to leave out")
    criteria = [item for i, item in enumerate(row.question["criteria"].items()) if i in kept]
    return replace(row, question=choice(row.question["instructions"], dict(criteria)), soft=None)


def accuracy_of(rows: list[Row], ask: Ask) -> float:
    """Returns the share of rows whose likeliest option is right."""
    right = [own.argmax() == label_index(row.question, row.label) for row, own in zip(rows, ask(rows))]
    return float(np.mean(right))


def add_candidate_figures(figures: Figures, rows: list[Row], ask: Ask) -> None:
    """Adds the accuracy among sixteen options, and without "none of these", to a set's figures."""
    found = among_candidates(rows, ask)
    if "among_16" in found:
        figures["among_16"] = found["among_16"]
    if "without_none" in found:
        figures["without_none"] = found["without_none"]


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
