"""The distribution that is learned from a row."""

from ..data.groups import one_hot
from ..data.question import label_index, option_count
from ..data.rows import Row

# The shares of the annotators' votes and of the label in what is learned.
VOTES, LABEL = 0.7, 0.3


def target_of(row: Row) -> list[float]:
    """Returns the distribution to learn: the label, mixed with the annotators' votes if there are any."""
    hard = one_hot(option_count(row.question), label_index(row.question, row.label))
    if row.soft is None or len(row.soft) != len(hard):
        return hard
    return [VOTES * vote + LABEL * one for vote, one in zip(row.soft, hard)]
