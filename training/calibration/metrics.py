"""Computes accuracy, calibration and abstention from plain arrays."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
BINS = 15
# The shares of the surest answers over which the accuracy is measured.
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


def softmax(logits: Array, temperature: float = 1.0) -> Array:
    """Returns the probabilities of one question's logits."""
    scaled = np.exp((logits - logits.max()) / temperature)
    return scaled / scaled.sum()


def interval(right: int, count: int) -> tuple[float, float]:
    """Returns Wilson's 95 % interval of a share."""
    if count == 0:
        return 0.0, 1.0
    z, share = 1.959964, right / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)


def bins(confidence: Array, right: Array) -> list[tuple[float, float, int]]:
    """Returns the mean confidence, the share of right answers and the size of each of 15 bins of equal mass."""
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    return [(float(confidence[part].mean()), float(right[part].mean()), len(part)) for part in parts]


def calibration_error(confidence: Array, right: Array) -> float:
    """Returns the expected calibration error over 15 bins of equal mass."""
    return sum(abs(mean - share) * size for mean, share, size in bins(confidence, right)) / max(len(right), 1)


def coverage(sureness: Array, right: Array) -> list[tuple[float, float]]:
    """Returns the accuracy over the surest share of the answers, for each share."""
    order = np.argsort(-sureness, kind="stable")
    counts = {share: max(1, round(share * len(right))) for share in SHARES}
    return [(share, float(right[order[:count]].mean())) for share, count in counts.items()]


def errors_removed(sureness: Array, right: Array, abstain: float = 0.2) -> float:
    """Returns the share of all errors that are among the least sure answers; 0 if there is no error."""
    lowest = np.argsort(sureness, kind="stable")[: round(abstain * len(right))]
    errors = (1 - right).sum()
    return float((1 - right)[lowest].sum() / errors) if errors else 0.0


def negative_log_likelihood(
    logits: list[Array], labels: list[int], temperature: float, weights: Array | None = None
) -> float:
    """Returns the mean over questions of minus the log of the right option's probability."""
    pairs = zip(logits, labels)
    losses = [float(np.logaddexp.reduce(row / temperature) - row[label] / temperature) for row, label in pairs]
    return float(np.average(losses, weights=weights))


def best_temperature(logits: list[Array], labels: list[int], weights: Array | None = None) -> float:
    """Returns the temperature between 0.2 and 5 at which the likelihood of the labels is greatest, found by golden
    section on its logarithm."""
    low, high, ratio = math.log(0.2), math.log(5.0), (math.sqrt(5) - 1) / 2

    def loss(at: float) -> float:
        return negative_log_likelihood(logits, labels, math.exp(at), weights)

    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return round(math.exp((low + high) / 2), 4)


def area_under_curve(scores: Array, labels: Array) -> float:
    """Returns the chance that a yes scores higher than a no; ties count half."""
    order = np.argsort(scores, kind="stable")
    _, first, inverse, counts = np.unique(scores[order], return_index=True, return_inverse=True, return_counts=True)
    ranks = np.empty(len(scores))
    ranks[order] = (first + (counts + 1) / 2)[inverse]
    yes = int(labels.sum())
    return float((ranks[labels].sum() - yes * (yes + 1) / 2) / (yes * (len(labels) - yes)))


def best_threshold(scores: Array, labels: Array) -> tuple[float, float]:
    """Returns the greatest accuracy that a threshold of the scores gives, and that threshold: a score above it is a
    yes."""
    order = np.argsort(scores, kind="stable")
    ordered, said = scores[order], labels[order].astype(int)
    # With the threshold behind the first i scores, each "no" among those and each "yes" among the others is right.
    noes, yeses = (np.concatenate([[0], np.cumsum(part)]) for part in (1 - said, said))
    right = noes + said.sum() - yeses
    ends = np.concatenate([[-np.inf], ordered, [np.inf]])
    right[1:-1][ordered[1:] == ordered[:-1]] = -1
    best = int(right.argmax())
    low, high = ends[best], ends[best + 1]
    middle = high - 1 if low == -np.inf else low + 1 if high == np.inf else (low + high) / 2
    return float(right[best] / len(scores)), float(middle)
