"""Rows for what no data exists for; the same seed makes the same rows."""
from random import Random
from typing import Iterator

from ..rows import Row
from . import customers, messages, records

SOURCE = "generated"


def about_record(rng: Random) -> Iterator[Row]:
    """Up to three questions about one record."""
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
    """At least `count` rows; rows about one state follow each other."""
    rng, made = Random(seed), 0
    while made < count:
        draw = rng.random()
        rows = list(about_record(rng)) if draw < 0.5 else [Row(SOURCE, *(messages.message(rng) if draw < 0.7 else customers.customer(rng)))]
        made += len(rows)
        yield from rows
