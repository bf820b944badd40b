"""Pairs claims with texts about the same matter that do not settle them, like most texts that a search finds."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

from ..data.rows import Row

# A source of premises and claims about many matters; in the other sources of inference, a claim does not name its
# subject.
SOURCE = "mnli_dev"
# A word that more than one in this many claims has tells little about the matter.
RARE = 100
# A claim and a text with at least this many common words are about one matter.
COMMON = 2
WORD = re.compile(r"[a-z]{5,}")


def words_of(text: str) -> list[str]:
    """Returns the longer words of a text, each once, in an order that is the same in every run."""
    return sorted(set(WORD.findall(text.lower())))


def by_word(rows: list[Row]) -> dict[str, list[Row]]:
    """Returns the rows of `SOURCE` by the words in their claims, without the frequent words and those of a single
    claim."""
    claims = [row for row in rows if row.source == SOURCE and row.question["type"] == "choice"]
    found: dict[str, list[Row]] = defaultdict(list)
    for row in claims:
        for word in words_of(row.state["hypothesis"]):
            found[word].append(row)
    return {word: those for word, those in found.items() if 1 < len(those) <= max(2, len(claims) // RARE)}


def unsettled(rng: Random, row: Row, claims: dict[str, list[Row]]) -> Row:
    """Returns the row with a claim about another text of the same matter, or the row itself if there is none."""
    premise = row.state["premise"]
    near = (other for word in words_of(premise) for other in claims.get(word, ()))
    shared = Counter(other.state["hypothesis"] for other in near if other.state["premise"] != premise)
    found = [claim for claim, count in shared.items() if count >= COMMON]
    return replace(row, state={**row.state, "hypothesis": rng.choice(found)}, label="neutral") if found else row
