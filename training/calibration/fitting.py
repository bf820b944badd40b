"""Fits temperatures by type and number of options, and a bias of "yes" by the form of a question, across sources that
are left out one at a time."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np

from ..data.files import object_in
from ..data.layout import TYPE_IDS
from ..data.question import ServedQuestion, option_count
from ..data.rows import Row
from ..data.unified import reading_of, unified
from .metrics import Array, best_temperature, negative_log_likelihood

# The file of the fitted values.
CALIBRATION = "calibration.json"

# The fewest and the most options of each bin; the last has no limit. Up to five options share one temperature: with one
# for two and another for three, the ratio of two options would change when a third is left out.
BINS = ((6, 10), (11, None))
FORMS = ("named", "question", "statement")
# Fewer rows, or rows of fewer sources, tell nothing about a bin or a form.
FEWEST_ROWS, FEWEST_SOURCES = 200, 4
WIDEST_BIAS = 2.0
# The sources agree on a bias if its mean over them is at least so many standard errors from 0.
SURE = 3.0
Fit = dict[str, float]


class OfOptions(TypedDict):
    """The temperature of a type's questions with `min` to `max` options; None is no limit."""

    type: str
    min: int
    max: int | None
    temperature: float


class Calibration(TypedDict):
    """The entries of config.json that say how logits become probabilities: the softmax of logits / temperature, with a
    noul's bias of "yes" added before the softmax."""

    temperature: Fit
    temperature_by_options: NotRequired[list[OfOptions]]
    noul_bias: NotRequired[Fit]
    unify: NotRequired[bool]


def holds(least: int, most: int | None, count: int) -> bool:
    """Whether a number of options is in a bin."""
    return least <= count and (most is None or count <= most)


def form_of(instructions: str) -> str:
    """Returns the form of a yes/no question: it names a field of the state in backticks, it is a question, or it is a
    statement."""
    if "`" in instructions:
        return "named"
    return "question" if "?" in instructions else "statement"


def weights_of(rows: list[Row]) -> Array:
    """Returns a weight for each row that makes every source count the same; the mean of the weights is 1."""
    counts = Counter(row.source for row in rows)
    weights = np.array([1 / counts[row.source] for row in rows])
    return weights / weights.mean()


class Fitted:
    """Rows with their logits and labels, and functions that fit them and measure the fit."""

    def __init__(self, rows: list[Row], logits: list[Array], labels: list[int]) -> None:
        self.rows, self.logits, self.labels = rows, logits, labels

    def where(self, holds: Callable[[Row], bool]) -> "Fitted":
        """Returns the rows for which `holds` is true."""
        kept = [i for i, row in enumerate(self.rows) if holds(row)]
        return Fitted([self.rows[i] for i in kept], [self.logits[i] for i in kept], [self.labels[i] for i in kept])

    def sources(self) -> list[str]:
        """Returns the sources of the rows, in order."""
        return sorted({row.source for row in self.rows})

    def enough(self) -> bool:
        """Whether there are enough rows and sources for a fit."""
        return len(self.rows) >= FEWEST_ROWS and len(self.sources()) >= FEWEST_SOURCES

    def temperature(self) -> float:
        """Returns the best temperature, with the same weight for every source."""
        return best_temperature(self.logits, self.labels, weights_of(self.rows)) if self.rows else 1.0

    def loss(self, temperature: float) -> float:
        """Returns the loss at a temperature, with the same weight for every source."""
        return negative_log_likelihood(self.logits, self.labels, temperature, weights_of(self.rows))

    def moved(self, bias: float) -> "Fitted":
        """Returns the same rows with `bias` added to the logit of "yes"."""
        return Fitted(self.rows, [row + np.array([0.0, bias]) for row in self.logits], self.labels)

    def bias(self, temperature: float) -> float:
        """Returns the bias of "yes" that describes the rows best at a temperature."""
        signs, weights = np.where(self.labels, 1, -1), weights_of(self.rows)
        margins = np.array([row[1] - row[0] for row in self.logits]) * signs
        tried = np.arange(-WIDEST_BIAS, WIDEST_BIAS + 1e-9, 0.05)
        losses = [np.logaddexp(0, -(margins + signs * bias) / temperature) for bias in tried]
        means = [float(np.average(loss, weights=weights)) for loss in losses]
        return round(float(tried[int(np.argmin(means))]), 2)


def of_source(source: str) -> Callable[[Row], bool]:
    """Returns whether a row is of a source."""
    return lambda row: row.source == source


def of_other_source(source: str) -> Callable[[Row], bool]:
    """Returns whether a row is of another source."""
    return lambda row: row.source != source


def left_out(rows: Fitted, fit: Callable[[Fitted], float], loss: Callable[[Fitted, float], float]) -> float:
    """Returns the mean over the sources of the loss on one source after a fit on the others."""
    sources = rows.sources()
    found = [loss(rows.where(of_source(name)), fit(rows.where(of_other_source(name)))) for name in sources]
    return float(np.mean(found))


def calibrated(rows: list[Row], logits: list[Array], labels: list[int], shift: float = 1.0) -> Calibration:
    """Returns entries of config.json: a temperature for each type, and those temperatures of bins and biases of "yes"
    that better describe sources on which they were not fitted."""
    everything = Fitted(rows, logits, labels)
    temperature: Fit = dict.fromkeys(TYPE_IDS, 1.0)
    by_options: list[OfOptions] = []
    bias: Fit = {}
    for kind in TYPE_IDS:
        own = everything.where(of_type(kind))
        if kind == "score" and not own.enough():
            # Levels in words are read as a choice, so few rows are left that are read as a score, or none.
            temperature[kind] = temperature["choice"]
            continue
        if not own.rows:
            continue
        whole = own.temperature()
        found = [] if kind == "noul" else bins(kind, own, whole, shift)
        by_options += found
        common = own.where(in_none_of(found)).temperature() if found else whole
        temperature[kind] = round(common * shift, 4)
        if kind == "noul":
            bias = {form: round(value / temperature[kind], 4) for form, value in biases(own, whole).items()}
    return {"temperature": temperature, "temperature_by_options": by_options, "noul_bias": bias}


def of_type(kind: str) -> Callable[[Row], bool]:
    """Returns whether a row's question is read as one of a type."""
    return lambda row: unified(row.question).question["type"] == kind


def in_bin(least: int, most: int | None) -> Callable[[Row], bool]:
    """Returns whether a row's number of options is in a bin."""
    return lambda row: holds(least, most, option_count(row.question))


def in_none_of(bins_found: list[OfOptions]) -> Callable[[Row], bool]:
    """Returns whether a row's number of options is in none of these bins."""
    return lambda row: not any(holds(one["min"], one["max"], option_count(row.question)) for one in bins_found)


def of_form(form: str) -> Callable[[Row], bool]:
    """Returns whether a row's question has a form."""
    return lambda row: form_of(row.question["instructions"]) == form


def bins(kind: str, own: Fitted, whole: float, shift: float) -> list[OfOptions]:
    """Returns the temperatures of the bins for which an own temperature is better than the common one."""
    found: list[OfOptions] = []
    for least, most in BINS:
        part = own.where(in_bin(least, most))
        said = "as all"
        if part.enough():
            common = left_out(part, lambda _: whole, Fitted.loss)
            if left_out(part, Fitted.temperature, Fitted.loss) < common:
                temperature = round(part.temperature() * shift, 4)
                found.append({"type": kind, "min": least, "max": most, "temperature": temperature})
                said = f"temperature {temperature}"
        print(f"  {kind}, {least} to {most} options: {len(part.rows)} rows of {len(part.sources())} sources", said)
    return found


def biases(own: Fitted, whole: float) -> Fit:
    """Returns the bias of "yes" for each form of question for which the sources agree and a bias helps sources that
    were left out."""
    found: Fit = {}
    for form in FORMS:
        part = own.where(of_form(form))
        if not part.enough():
            continue
        alone = [part.where(of_source(source)).bias(whole) for source in part.sources()]
        mean, spread = float(np.mean(alone)), float(np.std(alone))
        alike = abs(mean) > SURE * spread / np.sqrt(len(alone))
        biased = left_out(part, lambda rest: rest.bias(whole), lambda out, bias: out.moved(bias).loss(whole))
        unbiased = left_out(part, lambda _: 0.0, lambda out, _: out.loss(whole))
        if alike and biased < unbiased:
            found[form] = part.bias(whole)
        said = f"bias {found[form]}" if form in found else "none"
        rows = f"{len(part.rows)} rows of {len(part.sources())} sources"
        print(f"  {form}: {rows}, alone {mean:.2f} +- {spread:.2f},", said)
    return found


def fit_temperatures(rows: list[Row], logits: list[Array], labels: list[int]) -> Fit:
    """Returns the temperature of each type as questions are read, with the same weight for every source; 1 for a type
    without rows."""
    everything = Fitted(rows, logits, labels)
    temperature = dict.fromkeys(TYPE_IDS, 1.0)
    for kind in TYPE_IDS:
        own = everything.where(of_type(kind))
        if own.rows:
            temperature[kind] = own.temperature()
            before, after = own.loss(1.0), own.loss(temperature[kind])
            print(f"{kind}: {len(own.rows)} rows, temperature {temperature[kind]}, loss {before:.4f} to {after:.4f}")
    return temperature


def fitted(folder: Path) -> Calibration:
    """Returns the fitted values of `calibrate` or of a model folder; temperatures of 1 if there is neither."""
    for path in (folder / CALIBRATION, folder / "config.json"):
        if path.exists():
            return cast(Calibration, object_in(path))
    return {"temperature": dict.fromkeys(TYPE_IDS, 1.0)}


def besides(found: Calibration) -> dict[str, object]:
    """Returns the fitted values besides the temperatures of the types."""
    others = {"temperature_by_options": found.get("temperature_by_options"), "noul_bias": found.get("noul_bias")}
    return {name: value for name, value in others.items() if value}


def applied(config: Calibration, question: ServedQuestion, logits: Array) -> tuple[Array, float]:
    """Returns the logits, in the order of the question's options, and the temperature with which it is answered."""
    reading = reading_of(question, config.get("unify", False))
    kind, count = reading.question["type"], option_count(reading.question)
    own = (
        one["temperature"]
        for one in config.get("temperature_by_options", [])
        if one["type"] == kind and holds(one["min"], one["max"], count)
    )
    temperature = next(own, config["temperature"][kind])
    # Options that are read as one share its probability evenly.
    bias = -np.log([float(reading.places.count(place)) for place in reading.places])
    if kind == "noul":
        of_yes = config.get("noul_bias", {}).get(form_of(question.get("instructions", "")), 0.0)
        bias += np.array([of_yes * place for place in reading.places])
    return logits + bias * temperature, temperature
