"""Asks how a writer feels about something: as claims from both sides, as a choice among sides, and as a rating on two
to ten levels in many vocabularies."""

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from .asking import Scene, pick, questioned, said
from ..data.layout import Asked, Group, Tie
from .properties import staged, together
from ..data.rows import Row

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
LIKES = (
    "{} is positive",
    "the tone of {} is favourable",
    "the writer is pleased",
    "the author of {} speaks well of it",
    "the writer would recommend it",
    "{} is praise",
    "the verdict of {} is good",
    "{} leaves a good impression of its subject",
    "the reviewer liked it",
    "on balance, {} is in favour",
    "the writer came away satisfied",
    "{} expresses a good opinion",
    "somebody who reads {} would think that it is worth having",
    "the author thinks highly of it",
    "{} approves of what it describes",
)
DISLIKES = (
    "{} is negative",
    "the tone of {} is unfavourable",
    "the writer is displeased",
    "the author of {} speaks ill of it",
    "the writer would advise against it",
    "{} is criticism",
    "the verdict of {} is bad",
    "{} leaves a bad impression of its subject",
    "the reviewer did not like it",
    "on balance, {} is against it",
    "the writer was let down",
    "{} expresses a bad opinion",
    "somebody who reads {} would stay away from it",
    "the author thinks little of it",
    "{} finds fault with what it describes",
)
LIKED = (
    "Is {} positive?",
    "Did the writer like it?",
    "Is the verdict good?",
    "Would the author recommend it?",
    "Is the writer satisfied?",
    "Does {} praise more than it criticises?",
    "Is this a thumbs up?",
    "Is the tone favourable?",
    "Does the reviewer speak well of it?",
    "Is the opinion positive?",
    "Did they enjoy it?",
    "Would {} count as praise?",
)
DISLIKED = (
    "Is {} negative?",
    "Did the writer dislike it?",
    "Is the verdict bad?",
    "Would the author advise against it?",
    "Is the writer disappointed?",
    "Does {} criticise more than it praises?",
    "Is this a thumbs down?",
    "Is the tone unfavourable?",
    "Does the reviewer complain?",
    "Is the opinion negative?",
    "Were they let down?",
    "Would {} count as a complaint?",
)
TARGET_LIKES = (
    "the writer thinks well of {t}",
    "{t} comes off well",
    "what is said about {t} is good",
    "{t} is shown in a good light",
    "the attitude towards {t} is favourable",
    "{t} is praised",
    "the text is kind to {t}",
    "{t} should be pleased with what is written",
    "the sentiment towards {t} is positive",
)
TARGET_DISLIKES = (
    "the writer thinks ill of {t}",
    "{t} comes off badly",
    "what is said about {t} is bad",
    "{t} is shown in a bad light",
    "the attitude towards {t} is unfavourable",
    "{t} is criticised",
    "the text is hard on {t}",
    "{t} should be annoyed by what is written",
    "the sentiment towards {t} is negative",
)
TARGET_LIKED = (
    "Is the writer happy with {t}?",
    "Is {t} praised?",
    "Does {t} come off well?",
    "Is the tone towards {t} favourable?",
    "Would {t} like to read this?",
)
TARGET_DISLIKED = (
    "Is the writer unhappy with {t}?",
    "Is {t} criticised?",
    "Does {t} come off badly?",
    "Is the tone towards {t} unfavourable?",
    "Would {t} hate to read this?",
)
CHOOSE = (
    "What is the sentiment?",
    "What is the sentiment of {}?",
    "Classify the tone of {}.",
    "Positive or negative?",
    "How does the writer feel?",
    "Which way does {} lean?",
    "What is the verdict?",
    "Classify the opinion.",
    "Sentiment?",
    "What does the author think of it?",
    "Judge the attitude of {}.",
    "Is it praise or criticism?",
    "Label {} by its sentiment.",
    "The overall opinion is:",
)
TARGET_CHOOSE = (
    "What is the sentiment towards {t}?",
    "How is {t} portrayed?",
    "What does the writer think of {t}?",
    "Attitude towards {t}?",
    "Classify the tone towards {t}.",
    "{t} is described:",
    "Judge what is said of {t}.",
    "In which light does {t} appear?",
    "Opinion about {t}?",
)
# Names for unfavourable, neither and favourable.
THREE = (
    ("negative", "neutral", "positive"),
    ("Negative", "Neutral", "Positive"),
    ("bad", "neither", "good"),
    ("NEGATIVE", "NEUTRAL", "POSITIVE"),
    ("criticism", "neither", "praise"),
    ("dislikes", "indifferent", "likes"),
    ("unfavourable", "balanced", "favourable"),
    ("against", "undecided", "for"),
    ("thumbs_down", "so_so", "thumbs_up"),
    ("complaint", "remark", "compliment"),
    ("-1", "0", "1"),
)
THREE_TEXTS = (
    ("", "", ""),
    ("", "", ""),
    ("bad feeling or unfavourable opinion", "neither good nor bad, or mixed", "good feeling or favourable opinion"),
    ("speaks against it", "takes no side", "speaks for it"),
    ("bad for it", "no clear effect", "good for it"),
    ("the writer is unhappy", "no opinion", "the writer is happy"),
)
RATE = (
    "How positive is {}?",
    "Rate the sentiment of {}.",
    "How does the writer feel?",
    "How many stars did the writer give?",
    "How satisfied is the author?",
    "Guess the rating.",
    "What rating goes with {}?",
    "Place {} on the scale.",
    "How good was it, according to {}?",
    "Overall tone?",
    "How much did they like it?",
    "Score the opinion.",
    "How favourable is {}?",
    "Which star rating fits {}?",
    "How happy is the customer?",
    "Rating:",
)
TARGET_RATE = (
    "How favourable is the writer towards {t}?",
    "Rate the tone towards {t}.",
    "How positive is what is said of {t}?",
    "How well does {t} come off?",
    "Score the sentiment for {t}.",
    "How does the text portray {t}?",
)
FIVE = (
    ("very negative", "negative", "neutral", "positive", "very positive"),
    ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
    ("terrible", "bad", "okay", "good", "excellent"),
    ("hated it", "disliked it", "mixed feelings", "liked it", "loved it"),
    ("very dissatisfied", "dissatisfied", "neither", "satisfied", "very satisfied"),
    ("1", "2", "3", "4", "5"),
    ("awful", "poor", "average", "good", "great"),
    ("one star", "two stars", "three stars", "four stars", "five stars"),
    ("strongly unfavourable", "unfavourable", "mixed or neutral", "favourable", "strongly favourable"),
    ("worst", "weak", "fair", "strong", "best"),
    ("very unhappy", "unhappy", "indifferent", "happy", "very happy"),
    ("1/5", "2/5", "3/5", "4/5", "5/5"),
    ("a disaster", "a let-down", "so-so", "a success", "a triumph"),
    ("do not buy", "rather not", "maybe", "worth it", "a must"),
)
FIVE_TEXTS = (
    ("hated it", "did not like it", "it was all right", "liked it", "loved it"),
    ("a scathing review", "more bad than good", "as much good as bad", "more good than bad", "a rave review"),
)
AT_LEAST = (
    "The rating is at least {}.",
    "Would it get {} or more?",
    "Is it rated {} or better?",
    "The writer gives {} or higher.",
    "At least {}?",
    "It deserves {} or more, says the writer.",
    "No less than {}?",
    "{} or above.",
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
    r"\b(dislike[ds]?|disappointed|advises against|unfavourable|warns|negative(ly)?|criticises|critical of|unhappy|complains|bad)\b"
)
# The text before the target in a row's instructions, and the text behind it.
BEFORE = re.compile(
    r"^.*?(portray |portrays |favourably is |tone towards |entiment towards |critical of |favourable to |think of |dislikes |likes |How is |pinion about |remark about |good about |bad about |text say about |happy with |complains about )"
)
BEHIND = re.compile(r"( portrayed| judged| positively| negatively| is positive| is negative| positive| negative)?[.?]$")


@dataclass(frozen=True)
class Feeling:
    """A feeling: a distribution over five levels, its side (-1, 0 or 1), and its target if there is one."""

    levels: list[float]
    side: int
    target: str = ""


def feeling_of(row: Row) -> Feeling | None:
    """Returns the feeling of a row's writer, or None if the row tells nothing definite."""
    asked, kind, label = row.question["instructions"], row.question["type"], row.label
    if row.source == "emobank" and ("intens" in asked or "agitated" in asked):
        return None
    if kind == "score":
        return from_level(row)
    target = target_of(row)
    if kind == "choice":
        side = {
            "positive": 1,
            "praise": 1,
            "negative": -1,
            "complaint": -1,
            "neutral": 0,
            "no sentiment": 0,
            "mixed": 0,
        }.get(label)
        if side is None:
            return None
        if label == "mixed":
            return Feeling(MIXED, 0, target)
    else:
        if row.source == "product_reviews" and not target or row.source == "newsmtsc" and not label:
            return None  # "no" may mean neutral there
        side = 1 if bool(label) != bool(AGAINST.search(asked)) else -1
        if row.source == "vader_rated" and not label:
            return None
    mild = row.source in ("pros_cons", "newsmtsc", "tsa_md", "product_reviews", "poem_sentiment")
    return Feeling(
        {1: MILDLY_FAVOURABLE if mild else FAVOURABLE, -1: MILDLY_UNFAVOURABLE if mild else UNFAVOURABLE, 0: NEITHER}[
            side
        ],
        side,
        target,
    )


def from_level(row: Row) -> Feeling | None:
    """Returns a rated row's distribution over five levels."""
    count, label = len(row.question["criteria"]), int(row.label)
    if count == 5:
        hard = [float(i == label) for i in range(5)]
        near = [max(0.0, 1 - 0.8 * abs(i - label)) for i in range(5)]
        near = [value / sum(near) for value in near]
        soft = row.soft if row.soft and len(row.soft) == 5 else near
        levels = [0.6 * one + 0.4 * two for one, two in zip(soft, hard)]
    elif count == 6:
        levels = SIX_TO_FIVE[label]
    elif count == 3:
        levels = (MILDLY_UNFAVOURABLE, NEITHER, MILDLY_FAVOURABLE)[label]
    else:
        return None
    mean = sum(i * value for i, value in enumerate(levels)) - 2
    return Feeling(list(levels), 0 if abs(mean) < 0.4 else 1 if mean > 0 else -1, target_of(row))


def target_of(row: Row) -> str:
    """Returns the target of the feeling, if the row names it."""
    if isinstance(row.state, dict) and "person" in row.state:
        return row.state["person"]
    asked = row.question["instructions"]
    if row.source in TARGETED and BEFORE.search(asked):
        return BEHIND.sub("", BEFORE.sub("", asked, count=1))
    return ""


def nouns_of(source: str) -> tuple[str, ...]:
    """Returns the nouns for a source's texts."""
    return {
        "movie_reviews": ("review", "film review", "text"),
        "cad_sentiment": ("review", "movie review", "text"),
        "newsmtsc": ("sentence", "news text", "text"),
        "poem_sentiment": ("verse", "line", "text"),
        "emobank": ("text", "sentence", "passage"),
        "vader_rated": ("text", "post", "message", "review"),
    }.get(source, ("review", "comment", "opinion", "text"))


def felt(rng: Random, row: Row, feeling: Feeling) -> Group:
    """Returns questions about how the writer feels."""
    state = (
        {key: value for key, value in row.state.items() if key != "person" or rng.random() < 0.5}
        if isinstance(row.state, dict)
        else row.state
    )
    into = staged(rng, state, nouns_of(row.source))
    if isinstance(state, dict) and "sentence" in state and len(state) > 1:
        into.key, into.noun = "sentence", "sentence"
    makers = [sides, rated, claimed, claimed, rated]
    if feeling.side == 0:
        # "Neither" is a clear answer only if it is offered as an option.
        makers = [sides, rated]
    for make in rng.sample(makers, min(len(makers), rng.choice((1, 2, 2, 3)))):
        make(rng, into, feeling)
    nouls = [i for i, one in enumerate(into.asked) if one.question["type"] == "noul"]
    if len(nouls) == 2:
        first, second = nouls
        tie = together([into.asked[first], into.asked[second]])
        into.ties += [Tie(((first, 1),), ((second, side.other[0][1]),)) for side in tie]
    return into.group(rng, row.source)


def wording(rng: Random, into: Scene, feeling: Feeling, general: tuple[str, ...], targeted: tuple[str, ...]) -> str:
    """Returns a wording about the target if there is one, or about the whole text."""
    return pick(rng, targeted).format(t=feeling.target) if feeling.target else pick(rng, general).format(into.it(rng))


def claimed(rng: Random, into: Scene, feeling: Feeling) -> None:
    """Adds a claim or a question for one of the sides, which tells nothing about the answer."""
    positive = rng.random() < 0.5
    yes = 0.97 if (feeling.side > 0) == positive else 0.03
    if rng.random() < 0.55:
        said(
            rng,
            into,
            wording(rng, into, feeling, LIKES if positive else DISLIKES, TARGET_LIKES if positive else TARGET_DISLIKES),
            yes,
        )
    else:
        questioned(
            rng,
            into,
            wording(rng, into, feeling, LIKED if positive else DISLIKED, TARGET_LIKED if positive else TARGET_DISLIKED),
            yes,
        )


def sides(rng: Random, into: Scene, feeling: Feeling) -> None:
    """Adds a choice of two or three sides."""
    low, middle, high = feeling.levels[0] + feeling.levels[1], feeling.levels[2], feeling.levels[3] + feeling.levels[4]
    with_middle = feeling.side == 0 or rng.random() < 0.5
    names, texts = pick(rng, THREE), rng.choice(THREE_TEXTS)
    options = [(names[0], texts[0], low), (names[1], texts[1], middle), (names[2], texts[2], high)]
    if not with_middle:
        del options[1]
    rng.shuffle(options)
    total = sum(chance for _, _, chance in options)
    question = {
        "type": "choice",
        "instructions": wording(rng, into, feeling, CHOOSE, TARGET_CHOOSE),
        "criteria": {name: text for name, text, _ in options},
    }
    into.asked.append(Asked(question, sharper([chance / total for _, _, chance in options])))


def sharper(target: list[float]) -> list[float]:
    """Returns a sharper distribution, because a side is surer than the levels that make it up."""
    powered = [value**1.5 for value in target]
    return [value / sum(powered) for value in powered]


def rated(rng: Random, into: Scene, feeling: Feeling) -> None:
    """Adds a rating on two to five levels, as a score or as a choice, or whether it reaches a level."""
    names, levels = list(pick(rng, FIVE)), list(feeling.levels)
    draw = rng.random()
    if draw < 0.14:
        level = rng.choice((1, 2, 3, 4))
        into.asked.append(
            Asked(
                {"type": "noul", "instructions": pick(rng, AT_LEAST).format(names[level])},
                [sum(levels[:level]), sum(levels[level:])],
            )
        )
        return
    if draw < 0.26:
        names, levels = [names[0], names[2], names[4]], [levels[0] + levels[1], levels[2], levels[3] + levels[4]]
    elif draw < 0.3:
        names, levels = (
            [names[0], names[1], names[3], names[4]],
            [
                levels[0] + levels[2] / 8,
                levels[1] + 3 * levels[2] / 8,
                levels[3] + 3 * levels[2] / 8,
                levels[4] + levels[2] / 8,
            ],
        )
    texts = rng.choice(FIVE_TEXTS) if len(levels) == 5 and rng.random() < 0.15 else None
    instructions = wording(rng, into, feeling, RATE, TARGET_RATE)
    if rng.random() < 0.3:
        order = list(range(len(levels)))
        if rng.random() < 0.6:
            rng.shuffle(order)
        question: dict[str, Any] = {
            "type": "choice",
            "instructions": instructions,
            "criteria": {names[i]: texts[i] if texts else "" for i in order},
        }
        into.asked.append(Asked(question, [levels[i] for i in order]))
    else:
        if rng.random() < 0.1:
            names, levels, texts = names[::-1], levels[::-1], texts[::-1] if texts else None
        described = [f"{name}: {text}" for name, text in zip(names, texts)] if texts and rng.random() < 0.5 else names
        into.asked.append(Asked({"type": "score", "instructions": instructions, "criteria": list(described)}, levels))
