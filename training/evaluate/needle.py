"""Measures whether an answer is found in the last chunk of a long state."""

from dataclasses import dataclass
from random import Random
from typing import TypedDict

import numpy as np

from ..data.question import Choice, choice
from ..folder.reader import Folder
from ..generate import messages

ANIMALS = ("zebra", "lion", "fox", "otter", "whale", "eagle", "tiger", "horse", "snake", "rabbit")
CITIES = ("Paris", "Tokyo", "Berlin", "Madrid", "Oslo", "Cairo", "Lima", "Rome", "Boston", "Delhi")
# The kinds of facts: their values, the sentence, and the question.
KINDS = (
    (ANIMALS, "The secret animal is a {}.", "Which animal is the secret one?"),
    (CITIES, "The meeting takes place in {}.", "In which city is the meeting?"),
)
# The probability that a line of the filler is a line of a log and not a message.
LOG_LINE = 0.5
# The tokens that are left for the fact behind the filler.
ROOM = 60


@dataclass(frozen=True)
class Size:
    """The number of facts, and of long texts with their length in tokens."""

    facts: int = 80
    texts: int = 8
    tokens: int = 16_000


class Found(TypedDict):
    """The shares of facts that are found alone and at the end of long states."""

    tokens: int
    cases: int
    alone: float
    buried: float


@dataclass(frozen=True)
class Fact:
    """A sentence with a question that it answers, and the answer's index."""

    text: str
    question: Choice
    answer: int

    def is_found(self, folder: Folder, state: str) -> bool:
        """Whether the top answer about a state is right."""
        return bool(np.argmax(folder.ask(state, self.question).logits) == self.answer)


def facts(rng: Random, count: int) -> list[Fact]:
    """Returns facts of both kinds in turn."""
    made = []
    for i in range(count):
        names, text, asked = KINDS[i % 2]
        options = rng.sample(names, 5)
        answer = rng.randrange(5)
        made.append(Fact(text.format(options[answer]), choice(asked, dict.fromkeys(options, "")), answer))
    return made


def filler(rng: Random, folder: Folder, tokens: int) -> str:
    """Returns log lines and messages of about `tokens` tokens."""
    lines: list[str] = []
    used = 0
    while used < tokens:
        lines.append(messages.noise(rng, LOG_LINE))
        used += len(folder.tokens(lines[-1]))
    return "\n".join(lines)


BY_DEFAULT = Size()


def needle(folder: Folder, size: Size = BY_DEFAULT) -> Found:
    """Returns how many facts are found alone and at the end of long states; several facts share a text, of which only
    the last chunk differs."""
    rng = Random(23)
    made = facts(rng, size.facts)
    alone = sum(fact.is_found(folder, fact.text) for fact in made)
    each, buried = -(-size.facts // size.texts), 0
    for first in range(0, size.facts, each):
        hay = filler(rng, folder, size.tokens - ROOM)
        buried += sum(fact.is_found(folder, f"{hay}\n{fact.text}") for fact in made[first : first + each])
    return {
        "tokens": size.tokens,
        "cases": size.facts,
        "alone": alone / size.facts,
        "buried": buried / size.facts,
    }
