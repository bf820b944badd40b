"""Fits temperatures by type and number of options, and a bias of "yes" by the form of a question, across sources that
are left out one at a time."""

from collections import Counter
from typing import Any, Callable

import numpy as np

from ..data.layout import TYPE_IDS
from .metrics import Array, best_temperature, negative_log_likelihood
from ..data.rows import Row

# The most options of each bin (the last has no limit), and the bins' names in config.json.
BINS = ((2, "2"), (5, "3-5"), (10, "6-10"), (10**9, "11+"))
FORMS = ("named", "question", "statement")
# Fewer rows, or rows of fewer sources, tell nothing about a bin or a form.
FEWEST_ROWS, FEWEST_SOURCES = 60, 4
WIDEST_BIAS = 2.0
Fit = dict[str, float]


def bin_of(count: int) -> str:
    """Returns the name of the bin for a number of options."""
    return next(name for most, name in BINS if count <= most)


def form_of(instructions: str) -> str:
    """Returns the form of a yes/no question: it names a field of the state in backticks, it is a question, or it is a
    statement."""
    return "named" if "`" in instructions else "question" if instructions.rstrip().endswith("?") else "statement"


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
        margins = np.array([row[1] - row[0] for row in self.logits]) * np.where(self.labels, 1, -1)
        signs, weights = np.where(self.labels, 1, -1), weights_of(self.rows)
        tried = np.arange(-WIDEST_BIAS, WIDEST_BIAS + 1e-9, 0.05)
        losses = [
            float(np.average(np.logaddexp(0, -(margins + signs * bias) / temperature), weights=weights))
            for bias in tried
        ]
        return round(float(tried[int(np.argmin(losses))]), 2)


def left_out(rows: Fitted, fit: Callable[[Fitted], float], loss: Callable[[Fitted, float], float]) -> float:
    """Returns the mean over the sources of the loss on one source after a fit on the others."""
    found = [
        loss(
            rows.where(lambda row, out=source: row.source == out),
            fit(rows.where(lambda row, out=source: row.source != out)),
        )
        for source in rows.sources()
    ]
    return float(np.mean(found))


def calibrated(rows: list[Row], logits: list[Array], labels: list[int], shift: float = 1.0) -> dict[str, Any]:
    """Returns entries of config.json: a temperature for each type, and those temperatures of bins and biases of "yes"
    that better describe sources on which they were not fitted."""
    everything = Fitted(rows, logits, labels)
    found: dict[str, Any] = {"temperature": dict.fromkeys(TYPE_IDS, 1.0), "temperature_by_options": {}, "bias": {}}
    for kind in TYPE_IDS:
        own = everything.where(lambda row, kind=kind: row.question["type"] == kind)
        if not own.rows:
            continue
        whole = own.temperature()
        found["temperature"][kind] = round(whole * shift, 4)
        if kind == "noul":
            found["bias"] = {kind: biases(own, whole)}
        else:
            found["temperature_by_options"][kind] = {
                name: round(value * shift, 4) for name, value in bins(own, whole).items()
            }
    return found


def bins(own: Fitted, whole: float) -> Fit:
    """Returns the temperatures of the bins for which an own temperature is better than the common one."""
    found: Fit = {}
    for _, name in BINS:
        part = own.where(lambda row, name=name: bin_of(len(row.question["criteria"])) == name)
        if part.enough() and left_out(part, Fitted.temperature, Fitted.loss) < left_out(
            part, lambda _: whole, Fitted.loss
        ):
            found[name] = part.temperature()
        print(
            f"  {name} options: {len(part.rows)} rows of {len(part.sources())} sources",
            f"temperature {found[name]}" if name in found else "as all",
        )
    return found


def biases(own: Fitted, whole: float) -> Fit:
    """Returns the bias of "yes" for each form of question for which the sources agree and a bias helps sources that
    were left out."""
    found: Fit = {}
    for form in FORMS:
        part = own.where(lambda row, form=form: form_of(row.question["instructions"]) == form)
        if not part.enough():
            continue
        alone = [part.where(lambda row, out=source: row.source == out).bias(whole) for source in part.sources()]
        alike = abs(float(np.mean(alone))) > 2 * float(np.std(alone)) / np.sqrt(len(alone))
        helps = left_out(part, lambda rest: rest.bias(whole), lambda out, bias: out.moved(bias).loss(whole)) < left_out(
            part, lambda _: 0.0, lambda out, _: out.loss(whole)
        )
        if alike and helps:
            found[form] = part.bias(whole)
        print(
            f"  {form}: {len(part.rows)} rows of {len(part.sources())} sources, alone {np.mean(alone):.2f} +- {np.std(alone):.2f},",
            f"bias {found[form]}" if form in found else "none",
        )
    return found


def applied(config: dict[str, Any], question: dict[str, Any], logits: Array) -> tuple[Array, float]:
    """Returns the logits and the temperature with which a question is answered."""
    kind = question["type"]
    temperature = config["temperature"][kind]
    if kind == "noul":
        bias = config.get("bias", {}).get(kind, {}).get(form_of(question.get("instructions", "")), 0.0)
        return logits + np.array([0.0, bias]), temperature
    own = config.get("temperature_by_options", {}).get(kind, {})
    return logits, own.get(bin_of(len(question["criteria"])), temperature)
