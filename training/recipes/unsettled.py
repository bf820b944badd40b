"""Pairs claims with texts about the same matter that do not settle them, like most texts that a search finds."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

from ..data.rows import Row, State
from .verdicts import FACTS, parts_of

# A source of inference whose claims name their subject, which those of the others do not.
INFERENCE = "mnli_dev"
SOURCES = FACTS | {INFERENCE}
# The texts and the claims beside them, by source and by the words in the claims.
Claims = dict[str, dict[str, list[tuple[State, str]]]]
# A word that more than one in this many claims has tells little about the matter.
RARE = 100
# A claim and a text with at least this many common words are about one matter.
COMMON = 2
WORD = re.compile(r"[a-z]{5,}")


def words_of(text: str) -> list[str]:
    """Returns the longer words of a text, each once, in an order that is the same in every run."""
    return sorted(set(WORD.findall(text.lower())))


def beside(row: Row) -> tuple[State, str] | None:
    """Returns a row's text and the claim beside it; None if its state holds no claim."""
    parts = parts_of(row) if row.source in SOURCES else None
    return parts if parts and parts[1] in row.state.values() else None


def by_word(rows: list[Row]) -> Claims:
    """Returns the texts and claims of each of the sources, without the frequent words and those of a single claim."""
    found: Claims = {source: defaultdict(list) for source in sorted(SOURCES)}
    counts: Counter[str] = Counter()
    for row in rows:
        if pair := beside(row):
            counts[row.source] += 1
            for word in words_of(pair[1]):
                found[row.source][word].append(pair)
    return {
        source: {word: those for word, those in words.items() if 1 < len(those) <= max(2, counts[source] // RARE)}
        for source, words in found.items()
    }


def unsettled(rng: Random, row: Row, claims: Claims) -> Row:
    """Returns the row with a claim about another text of the same matter, or the row itself if there is none."""
    pair = beside(row) if row.question["type"] == "choice" else None
    if pair is None:
        return row
    text, settled = pair
    # The texts of facts are each beside several claims.
    own: set[str] = set()
    shared: Counter[str] = Counter()
    closeness: dict[str, float] = defaultdict(float)
    for those in (claims[row.source].get(word, []) for word in words_of(text)):
        for other, claim in those:
            shared[claim] += 1
            closeness[claim] += RARE / len(those)
            if other == text:
                own.add(claim)
    found = [claim for claim, count in shared.items() if count >= COMMON and claim not in own]
    if not found:
        return row
    # Claims with rare words in common, which are about the same people and places, are the harder ones.
    claim = rng.choices(found, [closeness[claim] ** 2 for claim in found])[0]
    return replace(
        row, state={key: claim if value == settled else value for key, value in row.state.items()}, label="neutral"
    )
