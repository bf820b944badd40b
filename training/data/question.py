"""Questions as the server takes them: yes or no (noul), a choice among options, or a score on levels."""

from collections.abc import Iterable
from typing import Literal, NotRequired, TypedDict

# An answer: true or false, an option's name, or a level's index.
Label = bool | str | int


class Noul(TypedDict):
    """A yes/no question; its criteria, if any, say what "true" and "false" stand for."""

    type: Literal["noul"]
    instructions: str
    criteria: NotRequired[dict[str, str]]


class Choice(TypedDict):
    """A choice; its criteria are the options' names and their descriptions, which may be empty."""

    type: Literal["choice"]
    instructions: str
    criteria: dict[str, str]


class NamedChoice(TypedDict):
    """A choice whose options have only names. The server takes such a question; rows describe every option."""

    type: Literal["choice"]
    instructions: str
    criteria: list[str]


class Score(TypedDict):
    """A score; its criteria are the levels, from the lowest up."""

    type: Literal["score"]
    instructions: str
    criteria: list[str]


Question = Noul | Choice | Score
ServedQuestion = Question | NamedChoice


def noul(instructions: str, criteria: dict[str, str] | None = None) -> Noul:
    """Returns a yes/no question."""
    if criteria is None:
        return {"type": "noul", "instructions": instructions}
    return {"type": "noul", "instructions": instructions, "criteria": criteria}


def choice(instructions: str, criteria: dict[str, str]) -> Choice:
    """Returns a choice among options, which are described by name."""
    return {"type": "choice", "instructions": instructions, "criteria": criteria}


def score(instructions: str, levels: Iterable[str]) -> Score:
    """Returns a score on levels."""
    return {"type": "score", "instructions": instructions, "criteria": list(levels)}


def with_instructions(question: Question, instructions: str) -> Question:
    """Returns the same question in other words."""
    other = question.copy()
    other["instructions"] = instructions
    return other


def option_count(question: ServedQuestion) -> int:
    """Returns the number of options of a question; 2 for noul."""
    return 2 if question["type"] == "noul" else len(question["criteria"])


def option_keys(question: ServedQuestion) -> list[str]:
    """Returns the names of a question's probabilities, in their order; those of a score are the indices of levels."""
    if question["type"] == "noul":
        return ["false", "true"]
    if question["type"] == "choice":
        return list(question["criteria"])
    return [str(level) for level in range(len(question["criteria"]))]


def label_index(question: Question, label: Label) -> int:
    """Returns the index of a label among its question's options; noul's are false, true.

    Raises ValueError if the label is none of them.
    """
    if question["type"] == "noul" and isinstance(label, bool):
        return int(label)
    if question["type"] == "choice" and label in question["criteria"]:
        return list(question["criteria"]).index(str(label))
    if question["type"] == "score" and isinstance(label, int) and 0 <= label < len(question["criteria"]):
        return label
    raise ValueError(f"label {label!r} is no answer to this {question['type']} question")


def label_at(question: Question, index: int) -> Label:
    """Returns the label of the option at an index."""
    if question["type"] == "noul":
        return bool(index)
    return list(question["criteria"])[index] if question["type"] == "choice" else index
