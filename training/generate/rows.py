"""Generates rows for kinds of questions without data; the same seed makes the same rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ..data.rows import Row
from . import comments, customers, issues, messages, records

SOURCE = "generated"


@dataclass(frozen=True)
class Chances:
    """The probabilities of what is generated. Fields that end in `_below` divide one draw: each is the upper end of its
    part."""

    record_below: float = 0.36
    message_below: float = 0.44
    customer_below: float = 0.6
    comment_below: float = 0.88
    issue_below: float = 1.0
    # Of further questions about a record.
    band: float = 0.4
    lookup: float = 0.4


CHANCES = Chances()
# The makers of rows that are not about records, each with the upper end of its draws.
MAKERS = (
    (CHANCES.message_below, messages.message),
    (CHANCES.customer_below, customers.customer),
    (CHANCES.comment_below, comments.comment),
    (CHANCES.issue_below, issues.issue),
)


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
    if rng.random() < CHANCES.band:
        key = rng.choice(numbers)
        kept.append(Row(SOURCE, state, *records.band(rng, key, records.number_of(fields, key))))
    names = [key for key in fields if key in records.NAMES]
    if names and rng.random() < CHANCES.lookup:
        key = rng.choice(names)
        kept.append(Row(SOURCE, state, *records.lookup(rng, key, records.name_of(fields, key))))
    yield from kept


def generated(seed: int, count: int) -> Iterator[Row]:
    """Yields at least `count` rows; rows about one state follow each other."""
    rng, made = Random(seed), 0
    while made < count:
        draw = rng.random()
        make = next(make for limit, make in MAKERS if draw < limit)
        rows = list(about_record(rng)) if draw < CHANCES.record_below else [Row(SOURCE, *make(rng))]
        made += len(rows)
        yield from rows
