"""The distribution that is learned from a row."""

from ..data.groups import Asked, Group, Tie, one_hot
from ..data.question import label_index, option_count
from ..data.rows import Row
from ..data.wording import covers_the_rest
from ..generate.exams import EXAMS, LESSONS
from ..generate.written import WRITTEN

# The shares of the annotators' votes and of the label in what is learned.
VOTES, LABEL = 0.7, 0.3
# Sources that ask for knowledge of the world that no text beside the question holds.
KNOWLEDGE = frozenset({"commonsenseqa", "csqa2", "creak", EXAMS})
# The share of the labels in what is learned from a source; the rest is a guess. Written rows are few and seen often, so
# that without it a model is soon surer of all it reads than it is right.
KNOWN = dict.fromkeys(KNOWLEDGE, 0.2) | dict.fromkeys((WRITTEN, LESSONS), 0.8)
# The share of the label where "none of these" is right: what fits no option is seldom as far from all of them as in
# rows whose right option was taken away.
NONE_RIGHT = 0.75
# Sums of probabilities that differ by less are equal.
EQUAL = 1e-6


def target_of(row: Row) -> list[float]:
    """Returns the distribution to learn: the label, mixed with the annotators' votes if there are any."""
    hard = one_hot(option_count(row.question), label_index(row.question, row.label))
    if row.soft is None or len(row.soft) != len(hard):
        return hard
    return [VOTES * vote + LABEL * one for vote, one in zip(row.soft, hard)]


def unsure(group: Group, known: float) -> None:
    """Mixes a guess into what is learned from a group, so that `known` is the share of the labels.

    A small encoder learns few rows, or rows about the world, by heart, one by one, and is then sure of what it does not
    know.
    """
    for asked in group.asked:
        guess(asked, known)
    keep_true_ties(group)


def unsure_of_none(group: Group) -> None:
    """Mixes a guess into what is learned from questions whose right option means "none of these"."""
    found = [asked for asked in group.asked if not asked.whole and none_is_right(asked)]
    for asked in found:
        guess(asked, NONE_RIGHT)
        asked.kept = False
    if found:
        keep_true_ties(group)


def none_is_right(asked: Asked) -> bool:
    """Whether the right option of a choice means "none of these"."""
    if asked.question["type"] != "choice" or max(asked.target) < 1:
        return False
    name, text = list(asked.question["criteria"].items())[asked.target.index(1.0)]
    return covers_the_rest(name, text)


def guess(asked: Asked, known: float) -> None:
    """Mixes a guess into what is learned from a question."""
    asked.target = [known * part + (1 - known) / len(asked.target) for part in asked.target]


def keep_true_ties(group: Group) -> None:
    """Drops the ties that no longer hold: an option of two merged has another share of a guess than both have."""
    group.ties = [tie for tie in group.ties if holds(group, tie)]


def holds(group: Group, tie: Tie) -> bool:
    """Whether a tie holds for what is to be learned."""
    one, other = (sum(group.asked[at].target[option] for at, option in side) for side in (tie.one, tie.other))
    return one <= other + EQUAL if tie.at_most else abs(one - other) < EQUAL
