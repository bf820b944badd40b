"""Groups that ask about one text what was asked about another. Nobody has labelled them; another model answers."""

from random import Random

from ..data.groups import Asked, Group
from ..data.layout import Encoded, encode
from ..recipes.asking import Draw
from ..recipes.mixture import STATE_LIMITS, Mixture

# The recipes whose questions can be asked about any text of one of them.
ABOUT_TEXTS = frozenset({"property", "feeling", "choice", "levels", "claim"})
ABOUT_EVIDENCE = frozenset({"verdict", "passage"})
# Questions that name a part of their state between backticks can only be asked about that state.
NAMED = "`"


def family_of(kind: str) -> frozenset[str] | None:
    """Returns the recipes of which one can ask about a text of another, by one of them."""
    return next((family for family in (ABOUT_TEXTS, ABOUT_EVIDENCE) if kind in family), None)


def crossed(rng: Random, mixture: Mixture, count: int) -> list[Encoded]:
    """Returns `count` encoded groups without answers. What ties their questions together holds about any text."""
    found: list[Encoded] = []
    while len(found) < count:
        group, kind = mixture.draw(rng)
        family = family_of(kind)
        if family is None or not group.asked or any(NAMED in asked.question["instructions"] for asked in group.asked):
            continue
        other, other_kind = mixture.draw(rng)
        while other_kind not in family:
            other, other_kind = mixture.draw(rng)
        asked = [Asked(one.question, [0.0] * len(one.target), kept=one.kept) for one in group.asked]
        found.append(encode(Group(f"crossed:{kind}", other.state, asked, group.ties), rng.choice(STATE_LIMITS)))
    return found


def partly_crossed(mixture: Mixture, index: int, size: int, share: float) -> list[Encoded]:
    """Returns a pool of groups, of which a share is crossed."""
    count = round(size * share)
    return mixture.pool(index, size - count) + crossed(Draw(f"{mixture.seed}:crossed:{index}"), mixture, count)
