"""Pairs claims with texts about the same matter that do not settle them, like most texts that a search finds."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

from ..data.rows import Row

# Sources of texts and claims about many matters; in the other sources of inference, a claim does not name its subject.
# None of the texts of those that check facts leaves its claim open.
INFERENCE, FACTS = "mnli_dev", frozenset({"fever_symmetric", "fool_me_twice"})
SOURCES = FACTS | {INFERENCE}
CLAIM_KEYS = ("hypothesis", "claim")
# A word that more than one in this many claims has tells little about the matter.
RARE = 100
# A claim and a text with at least this many common words are about one matter.
COMMON = 2
WORD = re.compile(r"[a-z]{5,}")


def words_of(text: str) -> list[str]:
    """Returns the longer words of a text, each once, in an order that is the same in every run."""
    return sorted(set(WORD.findall(text.lower())))


def split(row: Row) -> tuple[str, str, str] | None:
    """Returns a row's text, the key of its claim and the claim; None if it has no text or no claim beside it."""
    if row.source not in SOURCES or not isinstance(row.state, dict):
        return None
    key = next((key for key in CLAIM_KEYS if key in row.state), None)
    texts = [text for name, text in row.state.items() if name != key]
    return None if key is None or len(texts) != 1 else (texts[0], key, row.state[key])


def by_word(rows: list[Row]) -> dict[str, dict[str, list[Row]]]:
    """Returns the rows of each of the sources by the words in their claims, without the frequent words and those of a
    single claim."""
    found: dict[str, dict[str, list[Row]]] = {source: defaultdict(list) for source in sorted(SOURCES)}
    counts: Counter[str] = Counter()
    for row in rows:
        if parts := split(row):
            counts[row.source] += 1
            for word in words_of(parts[2]):
                found[row.source][word].append(row)
    return {
        source: {word: those for word, those in words.items() if 1 < len(those) <= max(2, counts[source] // RARE)}
        for source, words in found.items()
    }


def unsettled(rng: Random, row: Row, claims: dict[str, dict[str, list[Row]]]) -> Row:
    """Returns the row with a claim about another text of the same matter, or the row itself if there is none."""
    parts = split(row) if row.question["type"] == "choice" else None
    if parts is None:
        return row
    text, key, _ = parts
    # The texts of facts are each beside several claims.
    own: set[str] = set()
    shared: Counter[str] = Counter()
    closeness: dict[str, float] = defaultdict(float)
    for those in (claims[row.source].get(word, []) for word in words_of(text)):
        for other, _, claim in filter(None, map(split, those)):
            shared[claim] += 1
            closeness[claim] += RARE / len(those)
            if other == text:
                own.add(claim)
    found = [claim for claim, count in shared.items() if count >= COMMON and claim not in own]
    if not found:
        return row
    # Claims with rare words in common, which are about the same people and places, are the harder ones.
    claim = rng.choices(found, [closeness[claim] ** 2 for claim in found])[0]
    return replace(row, state={**row.state, key: claim}, label="neutral")
