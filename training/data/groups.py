"""The questions of one training step about one state, and the ties between their answers."""

from dataclasses import dataclass, field

from .question import Question

# The index of "yes" among the options of a yes/no question.
YES = 1


@dataclass
class Asked:
    """A question and the distribution over its options that is to be learned; `whole` if even its smallest
    probabilities mean something.

    `meant`: the options whose probabilities tell how similar to the state they are in meaning. `kept`: whether what
    an earlier model answers may be a part of what is learned.
    """

    question: Question
    target: list[float]
    whole: bool = False
    meant: list[int] = field(default_factory=list)
    kept: bool = True


@dataclass(frozen=True)
class Tie:
    """A tie between options, each as (question, option): the probabilities of both sides have the same sum, or with
    `at_most`, that of the first side is not larger."""

    one: tuple[tuple[int, int], ...]
    other: tuple[tuple[int, int], ...]
    at_most: bool = False


@dataclass
class Group:
    """A state, rendered as text, the questions about it in one step, and the ties between their answers."""

    source: str
    state: str
    asked: list[Asked]
    ties: list[Tie] = field(default_factory=list)


def equal(one: tuple[int, int], other: tuple[int, int]) -> Tie:
    """Returns the tie of two options, each as (question, option), that are equally likely."""
    return Tie((one,), (other,))


def one_hot(size: int, index: int) -> list[float]:
    """Returns a distribution with all mass on one option."""
    return [float(i == index) for i in range(size)]
