"""Asks how a writer feels about something: as claims from both sides, as a choice among sides, and as a rating on two
to ten levels in many vocabularies."""

import re
from dataclasses import dataclass
from random import Random

from ..data.groups import Asked, Group
from ..data.question import choice, noul, score
from ..data.rows import Row
from .asking import Scene, pick, questioned, said
from .properties import staged, tie_of
from .wordings import sentiment as wordings
from .wordings.sentiment import About


@dataclass(frozen=True)
class Chances:
    """The probabilities of the questions about a feeling, and the shares of what is learned. Fields that end in
    `_below` divide one draw: each is the upper end of its part."""

    person_named: float = 0.5
    # The favourable side, as in `properties`: most of the time, so that an answer hangs on the text from the start.
    positive: float = 0.75
    said: float = 0.55
    neither_offered: float = 0.5
    # Of a rating.
    threshold_below: float = 0.14
    three_levels_below: float = 0.26
    four_levels_below: float = 0.3
    described: float = 0.15
    rated_as_choice: float = 0.3
    choice_shuffled: float = 0.6
    upside_down: float = 0.1
    described_in_level: float = 0.5
    # Of an answer: the side that a feeling has may be read otherwise; votes and neighbouring levels count, too.
    side_holds: float = 0.97
    other_side_holds: float = 0.03
    votes: float = 0.6
    label: float = 0.4
    decay_by_level: float = 0.8


CHANCES = Chances()
# How much sharper a side is than the levels that make it up.
SHARPER = 1.5
# A mean of the levels that is nearer to the middle than this has no side.
NO_SIDE = 0.4

# Distributions over five levels for rows that only tell the side.
FAVOURABLE, UNFAVOURABLE, NEITHER = (
    [0.01, 0.03, 0.12, 0.44, 0.40],
    [0.40, 0.44, 0.12, 0.03, 0.01],
    [0.02, 0.13, 0.70, 0.13, 0.02],
)
MILDLY_FAVOURABLE, MILDLY_UNFAVOURABLE, MIXED = (
    [0.01, 0.04, 0.17, 0.5, 0.28],
    [0.28, 0.5, 0.17, 0.04, 0.01],
    [0.05, 0.25, 0.4, 0.25, 0.05],
)
SIX_TO_FIVE = (
    [0.85, 0.15, 0, 0, 0],
    [0.25, 0.65, 0.1, 0, 0],
    [0.05, 0.5, 0.4, 0.05, 0],
    [0, 0.05, 0.4, 0.5, 0.05],
    [0, 0, 0.1, 0.65, 0.25],
    [0, 0, 0, 0.15, 0.85],
)
TARGETED = frozenset({"newsmtsc", "tsa_md", "product_reviews"})
SOURCES = frozenset(
    {
        "pros_cons",
        "product_reviews",
        "vader_rated",
        "movie_reviews",
        "cad_sentiment",
        "tsa_md",
        "newsmtsc",
        "poem_sentiment",
        "emobank",
    }
)
# Words in a yes/no row's instructions by which yes means that the writer is against it.
AGAINST = re.compile(
    r"\b(dislike[ds]?|disappointed|advises against|unfavourable|warns|negative(ly)?|criticises|critical of|unhappy"
    r"|complains|bad)\b"
)
# The text before the target in a row's instructions, and the text behind it.
BEFORE = re.compile(
    r"^.*?(portray |portrays |favourably is |tone towards |entiment towards |critical of |favourable to |think of "
    r"|dislikes |likes |How is |pinion about |remark about |good about |bad about |text say about |happy with "
    r"|complains about )"
)
BEHIND = re.compile(r"( portrayed| judged| positively| negatively| is positive| is negative| positive| negative)?[.?]$")
MILD = frozenset({"pros_cons", "newsmtsc", "tsa_md", "product_reviews", "poem_sentiment"})
# The side of each label of a choice; "mixed" has a distribution of its own.
SIDE_OF = {"positive": 1, "praise": 1, "negative": -1, "complaint": -1, "neutral": 0, "no sentiment": 0}
NOUNS = {
    "movie_reviews": ("review", "film review", "text"),
    "cad_sentiment": ("review", "movie review", "text"),
    "newsmtsc": ("sentence", "news text", "text"),
    "poem_sentiment": ("verse", "line", "text"),
    "emobank": ("text", "sentence", "passage"),
    "vader_rated": ("text", "post", "message", "review"),
}


@dataclass(frozen=True)
class Feeling:
    """A feeling: a distribution over five levels, its side (-1, 0 or 1), and its target if there is one."""

    levels: list[float]
    side: int
    target: str = ""

    def three(self) -> list[float]:
        """Returns the probabilities of unfavourable, neither and favourable."""
        lowest, low, middle, high, highest = self.levels
        return [lowest + low, middle, high + highest]

    def four(self) -> list[float]:
        """Returns the distribution over four levels: the middle one is divided among the others."""
        lowest, low, middle, high, highest = self.levels
        return [lowest + middle / 8, low + 3 * middle / 8, high + 3 * middle / 8, highest + middle / 8]


def feeling_of(row: Row) -> Feeling | None:
    """Returns the feeling of a row's writer, or None if the row tells nothing definite."""
    asked, kind = row.question["instructions"], row.question["type"]
    if row.source == "emobank" and ("intens" in asked or "agitated" in asked):
        return None
    if kind == "score":
        return from_level(row)
    target = target_of(row)
    if row.label == "mixed" and kind == "choice":
        return Feeling(MIXED, 0, target)
    side = SIDE_OF.get(str(row.label)) if kind == "choice" else claimed_side(row, target)
    if side is None:
        return None
    favourable, unfavourable = FAVOURABLE, UNFAVOURABLE
    if row.source in MILD:
        favourable, unfavourable = MILDLY_FAVOURABLE, MILDLY_UNFAVOURABLE
    return Feeling({1: favourable, -1: unfavourable, 0: NEITHER}[side], side, target)


def claimed_side(row: Row, target: str) -> int | None:
    """Returns the side that a yes/no row tells; None if "no" may mean neutral."""
    if row.source == "product_reviews" and not target:
        return None
    if row.source in ("newsmtsc", "vader_rated") and not row.label:
        return None
    against = bool(AGAINST.search(row.question["instructions"]))
    return 1 if bool(row.label) != against else -1


def from_level(row: Row) -> Feeling | None:
    """Returns a rated row's distribution over five levels."""
    if row.question["type"] != "score":
        return None
    count, label = len(row.question["criteria"]), int(row.label)
    if count == 5:
        levels = mixed_with_votes(label, row.soft)
    elif count == 6:
        levels = SIX_TO_FIVE[label]
    elif count == 3:
        levels = (MILDLY_UNFAVOURABLE, NEITHER, MILDLY_FAVOURABLE)[label]
    else:
        return None
    mean = sum(i * value for i, value in enumerate(levels)) - 2
    return Feeling(list(levels), 0 if abs(mean) < NO_SIDE else 1 if mean > 0 else -1, target_of(row))


def mixed_with_votes(label: int, votes: list[float] | None) -> list[float]:
    """Returns the distribution over five levels: the label, mixed with the annotators' votes or with the levels near
    it."""
    hard = [float(i == label) for i in range(5)]
    near = [max(0.0, 1 - CHANCES.decay_by_level * abs(i - label)) for i in range(5)]
    near = [value / sum(near) for value in near]
    soft = votes if votes and len(votes) == 5 else near
    return [CHANCES.votes * one + CHANCES.label * two for one, two in zip(soft, hard)]


def target_of(row: Row) -> str:
    """Returns the target of the feeling, if the row names it."""
    if isinstance(row.state, dict) and "person" in row.state:
        return str(row.state["person"])
    asked = row.question["instructions"]
    if row.source in TARGETED and BEFORE.search(asked):
        return BEHIND.sub("", BEFORE.sub("", asked, count=1))
    return ""


def felt(rng: Random, row: Row, feeling: Feeling) -> Group:
    """Returns questions about how the writer feels."""
    state = row.state
    if isinstance(state, dict):
        state = {key: value for key, value in state.items() if key != "person" or rng.random() < CHANCES.person_named}
    into = staged(rng, state, NOUNS.get(row.source, ("review", "comment", "opinion", "text")))
    if isinstance(state, dict) and "sentence" in state and len(state) > 1:
        into.key, into.noun = "sentence", "sentence"
    makers = [sides, rated, claimed, claimed, rated, claimed]
    if feeling.side == 0:
        # "Neither" is a clear answer only if it is offered as an option.
        makers = [sides, rated]
    for make in rng.sample(makers, min(len(makers), rng.choice((2, 3, 3, 4)))):
        make(rng, into, feeling)
    nouls = [(i, asked) for i, asked in enumerate(into.asked) if asked.question["type"] == "noul"]
    if len(nouls) == 2:
        into.ties += tie_of(*nouls)
    return into.group(rng, row.source)


def wording(rng: Random, into: Scene, feeling: Feeling, about: About) -> str:
    """Returns a wording about the target if there is one, or about the whole text."""
    if feeling.target:
        return pick(rng, about.target).format(t=feeling.target)
    return pick(rng, about.text).format(into.it(rng))


def claimed(rng: Random, into: Scene, feeling: Feeling) -> None:
    """Adds a claim or a question for one of the sides, which tells nothing about the answer."""
    positive = rng.random() < CHANCES.positive
    yes = CHANCES.side_holds if (feeling.side > 0) == positive else CHANCES.other_side_holds
    if rng.random() < CHANCES.said:
        about = wordings.LIKES if positive else wordings.DISLIKES
        said(rng, into, wording(rng, into, feeling, about), yes)
    else:
        about = wordings.LIKED if positive else wordings.DISLIKED
        questioned(rng, into, wording(rng, into, feeling, about), yes)


def sides(rng: Random, into: Scene, feeling: Feeling) -> None:
    """Adds a choice of two or three sides."""
    with_middle = feeling.side == 0 or rng.random() < CHANCES.neither_offered
    names, texts = pick(rng, wordings.THREE), rng.choice(wordings.THREE_TEXTS)
    options = list(zip(names, texts, feeling.three()))
    if not with_middle:
        del options[1]
    rng.shuffle(options)
    total = sum(chance for _, _, chance in options)
    asked = wording(rng, into, feeling, wordings.CHOOSE)
    target = sharper([chance / total for _, _, chance in options])
    into.ask(Asked(choice(asked, {name: text for name, text, _ in options}), target))


def sharper(target: list[float]) -> list[float]:
    """Returns a sharper distribution, because a side is surer than the levels that make it up."""
    powered = [value**SHARPER for value in target]
    return [value / sum(powered) for value in powered]


def rated(rng: Random, into: Scene, feeling: Feeling) -> None:
    """Adds a rating on three to five levels, as a score or as a choice, or whether it reaches a level."""
    names, levels = list(pick(rng, wordings.FIVE)), list(feeling.levels)
    draw = rng.random()
    if draw < CHANCES.threshold_below:
        level = rng.choice((1, 2, 3, 4))
        asked = noul(pick(rng, wordings.AT_LEAST).format(names[level]))
        into.ask(Asked(asked, [sum(levels[:level]), sum(levels[level:])]))
        return
    if draw < CHANCES.three_levels_below:
        names, levels = [names[0], names[2], names[4]], feeling.three()
    elif draw < CHANCES.four_levels_below:
        names, levels = [names[0], names[1], names[3], names[4]], feeling.four()
    texts: list[str] = []
    if len(levels) == 5 and rng.random() < CHANCES.described:
        texts = list(rng.choice(wordings.FIVE_TEXTS))
    instructions = wording(rng, into, feeling, wordings.RATE)
    if rng.random() < CHANCES.rated_as_choice:
        into.ask(rated_choice(rng, instructions, list(zip(names, texts or [""] * len(names), levels))))
        return
    if rng.random() < CHANCES.upside_down:
        names, levels, texts = names[::-1], levels[::-1], texts[::-1]
    if texts and rng.random() < CHANCES.described_in_level:
        names = [f"{name}: {text}" for name, text in zip(names, texts)]
    into.ask(Asked(score(instructions, names), levels))


def rated_choice(rng: Random, instructions: str, options: list[tuple[str, str, float]]) -> Asked:
    """Returns a rating as a choice among levels, each with its description and its probability."""
    order = list(range(len(options)))
    if rng.random() < CHANCES.choice_shuffled:
        rng.shuffle(order)
    chosen = [options[i] for i in order]
    return Asked(choice(instructions, {name: text for name, text, _ in chosen}), [value for _, _, value in chosen])
