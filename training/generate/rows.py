"""Generates rows for kinds of questions without data; the same seed makes the same rows."""

from random import Random
from typing import Iterator

from ..data.rows import Row
from . import comments, customers, issues, messages, records

SOURCE = "generated"
# The share of records, and the makers of the other rows, each with the upper end of its draws.
RECORDS = 0.36
ONE = ((0.44, messages.message), (0.6, customers.customer), (0.88, comments.comment), (1.0, issues.issue))


def about_record(rng: Random) -> Iterator[Row]:
    """Yields rows with questions about one record."""
    fields = records.record(rng)
    state = records.nested(rng, fields)
    kept = []
    for _ in range(rng.randint(1, 3)):
        question, answer, policy = records.yes_no(rng, fields)
        if policy:
            yield Row(SOURCE, {"policy": policy, "record": state}, question, answer)
        else:
            kept.append(Row(SOURCE, state, question, answer))
    numbers = [key for key in fields if key in records.NUMBERS]
    if rng.random() < 0.4:
        key = rng.choice(numbers)
        kept.append(Row(SOURCE, state, *records.band(rng, key, fields[key])))
    names = [key for key in fields if key in records.NAMES]
    if names and rng.random() < 0.4:
        key = rng.choice(names)
        kept.append(Row(SOURCE, state, *records.lookup(rng, key, fields[key])))
    yield from kept


def generated(seed: int, count: int) -> Iterator[Row]:
    """Yields at least `count` rows; rows about one state follow each other."""
    rng, made = Random(seed), 0
    while made < count:
        draw = rng.random()
        one = next(make for limit, make in ONE if draw < limit)
        rows = list(about_record(rng)) if draw < RECORDS else [Row(SOURCE, *one(rng))]
        made += len(rows)
        yield from rows
