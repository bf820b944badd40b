"""Measures whether an answer is found in the last chunk of a long state."""

from random import Random
from typing import Any

import numpy as np

from ..folder.reader import Folder
from ..generate import messages

LONG = 16_000
ANIMALS = ("zebra", "lion", "fox", "otter", "whale", "eagle", "tiger", "horse", "snake", "rabbit")
CITIES = ("Paris", "Tokyo", "Berlin", "Madrid", "Oslo", "Cairo", "Lima", "Rome", "Boston", "Delhi")


def facts(rng: Random, count: int) -> list[tuple[str, dict[str, Any], int]]:
    """Returns sentences, each with a question that it answers and the answer's index."""
    made = []
    for i in range(count):
        names, text, asked = (
            (ANIMALS, "The secret animal is a {}.", "Which animal is the secret one?"),
            (CITIES, "The meeting takes place in {}.", "In which city is the meeting?"),
        )[i % 2]
        options = rng.sample(names, 5)
        answer = rng.randrange(5)
        made.append(
            (
                text.format(options[answer]),
                {"type": "choice", "instructions": asked, "criteria": dict.fromkeys(options, "")},
                answer,
            )
        )
    return made


def filler(rng: Random, folder: Folder, tokens: int) -> str:
    """Returns log lines and messages of about `tokens` tokens."""
    lines: list[str] = []
    used = 0
    while used < tokens:
        state = messages.log_line(rng)[0] if rng.random() < 0.5 else messages.request(rng)[0]
        lines.append(state if isinstance(state, str) else " ".join(state.values()))
        used += len(folder.tokens(lines[-1]))
    return "\n".join(lines)


def needle(folder: Folder, count: int = 80, tokens: int = LONG, texts: int = 8) -> dict[str, Any]:
    """Returns how many facts are found alone and at the end of long states; several facts share a text, of which only
    the last chunk differs."""
    rng = Random(23)
    made = facts(rng, count)
    alone = [int(np.argmax(folder.ask(text, question)[0]) == answer) for text, question, answer in made]
    buried = []
    for first in range(0, count, -(-count // texts)):
        hay = filler(rng, folder, tokens - 60)
        for text, question, answer in made[first : first + -(-count // texts)]:
            buried.append(int(np.argmax(folder.ask(f"{hay}\n{text}", question)[0]) == answer))
    return {"tokens": tokens, "cases": count, "alone": sum(alone) / count, "buried": sum(buried) / count}
