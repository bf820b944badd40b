"""Measures whether answers fit together: each figure is a mean absolute deviation over held-out cases, 0 if they fit
exactly."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypedDict

import numpy as np

from ..calibration.metrics import Array
from ..data import wording as words
from ..data.question import Choice, Question, choice, noul
from ..data.rows import Row, State
from ..folder.reader import Folder
from ..generate import records


@dataclass(frozen=True)
class Case:
    """A kind of coherence, a state, questions about it, and a function that gives the distance of their probabilities
    from fitting."""

    kind: str
    state: State
    questions: list[Question]
    deviation: Callable[[list[Array]], float]


class Deviation(TypedDict):
    """The mean deviation of the cases of a kind, and their number."""

    deviation: float
    cases: int


# The most options of a list that is asked about.
LONGEST = 12

TRANSLATED = (
    ("Is the customer angry?", "Ist der Kunde verärgert?"),
    ("Is the customer angry?", "Le client est-il en colère ?"),
    ("Does the text contain personal data?", "Enthält der Text personenbezogene Daten?"),
    ("Is this a question?", "¿Es esto una pregunta?"),
    ("Is the tone positive?", "Le ton est-il positif ?"),
    ("Does this need an answer today?", "Braucht das heute noch eine Antwort?"),
)


def same(p: list[Array]) -> float:
    """Returns half the sum of the absolute differences between two distributions."""
    return float(np.abs(p[0] - p[1]).sum() / 2)


def statement_cases(rng: Random, row: Row) -> Iterator[Case]:
    """Yields cases of a yes/no statement: its negation, other wordings, typos and upper case."""
    text = row.question["instructions"]
    plain = noul(text)
    if text.endswith("."):
        denied = noul(f"It is not true that {words.lower_first(text)}.")
        asked = noul(f"Is it true that {words.lower_first(text)}?")
        yield Case("negation", row.state, [plain, denied], lambda p: abs(p[0][1] + p[1][1] - 1))
        yield Case("paraphrase", row.state, [plain, asked], same)
    yield Case("typo", row.state, [plain, noul(words.typo(rng, text))], same)
    yield Case("capitals", row.state, [plain, noul(text.upper())], same)


def choice_cases(rng: Random, state: State, question: Choice) -> Iterator[Case]:
    """Yields cases of a choice: against yes/no questions on its options, with merged options, and with misleading
    names."""
    instructions, criteria = question["instructions"], question["criteria"]
    names = list(criteria)[:LONGEST]
    texts = [criteria[name] or words.humanized(name) for name in names]
    plain = choice(instructions, dict(zip(names, texts)))
    at = rng.randrange(len(names))
    asked = noul(f'{instructions} Is it "{texts[at]}"?')
    yield Case("choice and yes/no", state, [plain, asked], lambda p: abs(p[0][at] - p[1][1]))
    if len(names) > 2:
        either = f"{texts[0]} or {texts[1]}"
        merged = choice(instructions, {names[0]: either, **dict(zip(names[2:], texts[2:]))})
        yield Case("merged options", state, [plain, merged], lambda p: abs(p[0][0] + p[0][1] - p[1][0]))
    letters = choice(instructions, {chr(65 + i): text for i, text in enumerate(texts)})
    swapped = choice(instructions, dict(zip(names[1:] + names[:1], texts)))
    yield Case("misleading names", state, [letters, swapped], same)


def excess(larger: float, smaller: float) -> float:
    """Returns by how much one number exceeds another; 0 if it does not."""
    return max(0.0, float(larger - smaller))


def record_cases(rng: Random) -> Iterator[Case]:
    """Yields cases with "and", "or" and thresholds over a record."""
    fields = records.record(rng)
    (a, _), (b, _) = records.condition(rng, fields), records.condition(rng, fields)
    one, two, both, either = (noul(f"Is it true that {text}?") for text in (a, b, f"{a} and {b}", f"{a} or {b}"))
    yield Case("and", fields, [one, two, both], lambda p: excess(p[2][1], min(p[0][1], p[1][1])))
    yield Case("or", fields, [one, two, either], lambda p: excess(max(p[0][1], p[1][1]), p[2][1]))
    key = rng.choice([key for key in fields if key in records.NUMBERS])
    low, high = sorted((rng.randint(*records.NUMBERS[key]), rng.randint(*records.NUMBERS[key])))
    lower, higher = (noul(f"Is the {records.words(key)} over {limit}?") for limit in (low, high))
    yield Case("threshold", fields, [lower, higher], lambda p: excess(p[1][1], p[0][1]))


def cases(rows: list[Row], count: int) -> Iterator[Case]:
    """Yields the cases of every kind, up to `count` of each."""
    rng, real = Random(17), [row for row in rows if row.state and row.source != "generated"]
    statements = [row for row in real if row.question["type"] == "noul"]
    lists = [
        (row.state, row.question)
        for row in real
        if row.question["type"] == "choice" and len(row.question["criteria"]) > 2
    ]
    for row in rng.sample(statements, min(count, len(statements))):
        yield from statement_cases(rng, row)
    for state, question in rng.sample(lists, min(count, len(lists))):
        yield from choice_cases(rng, state, question)
    for _ in range(count):
        yield from record_cases(rng)
    states = [*(row.state for row in statements), *(state for state, _ in lists)]
    texts = [state for state in states if isinstance(state, str)] or ["Where is my parcel? I want my money back."]
    for english, other in TRANSLATED:
        for text in rng.sample(texts, min(max(1, count // len(TRANSLATED)), len(texts))):
            yield Case("translation", text, [noul(english), noul(other)], same)


def coherence(folder: Folder, rows: list[Row], count: int) -> dict[str, Deviation]:
    """Returns the mean deviation and the number of cases for each kind of case."""
    found: dict[str, list[float]] = defaultdict(list)
    for case in cases(rows, count):
        probabilities = [folder.probabilities(case.state, question) for question in case.questions]
        found[case.kind].append(case.deviation(probabilities))
    return {kind: {"deviation": float(np.mean(values)), "cases": len(values)} for kind, values in found.items()}
