"""Measures whether answers fit together: each figure is a mean absolute deviation over held-out cases, 0 if they fit
exactly."""

from collections import defaultdict
from random import Random
from typing import Any, Callable, Iterator

import numpy as np

from ..data import wording as words
from ..folder.reader import Folder
from ..generate import records
from ..data.rows import Row

Question = dict[str, Any]
# A kind, a state, questions about it, and a function that gives the distance of their probabilities from fitting.
Case = tuple[str, Any, list[Question], Callable[[list[np.ndarray]], float]]

TRANSLATED = (
    ("Is the customer angry?", "Ist der Kunde verärgert?"),
    ("Is the customer angry?", "Le client est-il en colère ?"),
    ("Does the text contain personal data?", "Enthält der Text personenbezogene Daten?"),
    ("Is this a question?", "¿Es esto una pregunta?"),
    ("Is the tone positive?", "Le ton est-il positif ?"),
    ("Does this need an answer today?", "Braucht das heute noch eine Antwort?"),
)


def noul(instructions: str) -> Question:
    """Returns a yes/no question."""
    return {"type": "noul", "instructions": instructions}


def choice(instructions: str, criteria: dict[str, str]) -> Question:
    """Returns a choice."""
    return {"type": "choice", "instructions": instructions, "criteria": criteria}


def same(p: list[np.ndarray]) -> float:
    """Returns half the sum of the absolute differences between two distributions."""
    return float(np.abs(p[0] - p[1]).sum() / 2)


def statement_cases(rng: Random, row: Row) -> Iterator[Case]:
    """Yields cases of a yes/no statement: its negation, other wordings, typos and upper case."""
    text = row.question["instructions"]
    plain = noul(text)
    if text.endswith("."):
        yield (
            "negation",
            row.state,
            [plain, noul(f"It is not true that {words.lower_first(text)}.")],
            lambda p: abs(p[0][1] + p[1][1] - 1),
        )
        yield "paraphrase", row.state, [plain, noul(f"Is it true that {words.lower_first(text)}?")], same
    yield "typo", row.state, [plain, noul(words.typo(rng, text))], same
    yield "capitals", row.state, [plain, noul(text.upper())], same


def choice_cases(rng: Random, row: Row) -> Iterator[Case]:
    """Yields cases of a choice: against yes/no questions on its options, with merged options, and with misleading
    names."""
    instructions, criteria = row.question["instructions"], row.question["criteria"]
    names = list(criteria)[:12]
    texts = [criteria[name] or words.humanized(name) for name in names]
    plain = choice(instructions, dict(zip(names, texts)))
    at = rng.randrange(len(names))
    yield (
        "choice and yes/no",
        row.state,
        [plain, noul(f'{instructions} Is it "{texts[at]}"?')],
        lambda p: abs(p[0][at] - p[1][1]),
    )
    if len(names) > 2:
        merged = {names[0]: f"{texts[0]} or {texts[1]}", **dict(zip(names[2:], texts[2:]))}
        yield (
            "merged options",
            row.state,
            [plain, choice(instructions, merged)],
            lambda p: abs(p[0][0] + p[0][1] - p[1][0]),
        )
    letters = {chr(65 + i): text for i, text in enumerate(texts)}
    swapped = dict(zip(names[1:] + names[:1], texts))
    yield "misleading names", row.state, [choice(instructions, letters), choice(instructions, swapped)], same


def record_cases(rng: Random) -> Iterator[Case]:
    """Yields cases with "and", "or" and thresholds over a record."""
    fields = records.record(rng)
    (a, _), (b, _) = records.condition(rng, fields), records.condition(rng, fields)
    parts = [noul(f"Is it true that {text}?") for text in (a, b, f"{a} and {b}", f"{a} or {b}")]
    yield "and", fields, parts[:3], lambda p: max(0.0, float(p[2][1] - min(p[0][1], p[1][1])))
    yield "or", fields, [parts[0], parts[1], parts[3]], lambda p: max(0.0, float(max(p[0][1], p[1][1]) - p[2][1]))
    key = rng.choice([key for key in fields if key in records.NUMBERS])
    low, high = sorted((rng.randint(*records.NUMBERS[key]), rng.randint(*records.NUMBERS[key])))
    pair = [noul(f"Is the {records.words(key)} over {limit}?") for limit in (low, high)]
    yield "threshold", fields, pair, lambda p: max(0.0, float(p[1][1] - p[0][1]))


def cases(rows: list[Row], count: int) -> Iterator[Case]:
    """Yields the cases of every kind, up to `count` of each."""
    rng = Random(17)
    statements = [row for row in rows if row.question["type"] == "noul" and row.state and row.source != "generated"]
    lists = [
        row
        for row in rows
        if row.question["type"] == "choice"
        and row.state
        and len(row.question["criteria"]) > 2
        and row.source != "generated"
    ]
    for row in rng.sample(statements, min(count, len(statements))):
        yield from statement_cases(rng, row)
    for row in rng.sample(lists, min(count, len(lists))):
        yield from choice_cases(rng, row)
    for _ in range(count):
        yield from record_cases(rng)
    texts = [row.state for row in statements + lists if isinstance(row.state, str)] or [
        "Where is my parcel? I want my money back."
    ]
    for english, other in TRANSLATED:
        for text in rng.sample(texts, min(max(1, count // len(TRANSLATED)), len(texts))):
            yield "translation", text, [noul(english), noul(other)], same


def coherence(folder: Folder, rows: list[Row], count: int) -> dict[str, Any]:
    """Returns the mean deviation and the number of cases for each kind of case."""
    found: dict[str, list[float]] = defaultdict(list)
    for kind, state, questions, deviation in cases(rows, count):
        found[kind].append(deviation([folder.probabilities(state, question) for question in questions]))
    return {kind: {"deviation": float(np.mean(values)), "cases": len(values)} for kind, values in found.items()}
