"""Derives further questions from an emotion: whether the text is positive, how much, and the family of the emotion."""

from dataclasses import dataclass
from random import Random

from ..data.groups import Asked, one_hot
from ..data.question import choice, noul, score


@dataclass(frozen=True)
class Chances:
    """The probabilities of the questions that an emotion answers, and of answers that readers may give."""

    neutral_offered: float = 0.5
    three_levels: float = 0.35
    family: float = 0.4
    # A mild emotion may be read as neither, a text without one as either.
    mild_read_as_neither: float = 0.15
    neutral_read_as_claimed: float = 0.2


CHANCES = Chances()

# The valence of each emotion, from very negative to very positive; 0 is neither.
VALENCE = {
    **dict.fromkeys(("anger", "disgust", "fear", "grief", "sadness"), -2),
    **dict.fromkeys(("annoyance", "disappointment", "disapproval", "embarrassment", "nervousness", "remorse"), -1),
    **dict.fromkeys(("confusion", "curiosity", "desire", "neutral", "realization", "surprise"), 0),
    **dict.fromkeys(("amusement", "approval", "caring", "optimism", "pride", "relief"), 1),
    **dict.fromkeys(("admiration", "excitement", "gratitude", "joy", "love"), 2),
}
# The distribution over five levels for each valence: readers differ by one level.
FIVE = {
    -2: [0.6, 0.32, 0.08, 0.0, 0.0],
    -1: [0.22, 0.58, 0.2, 0.0, 0.0],
    0: [0.0, 0.12, 0.76, 0.12, 0.0],
    1: [0.0, 0.0, 0.2, 0.58, 0.22],
    2: [0.0, 0.0, 0.08, 0.32, 0.6],
}
SIDES = (
    ("negative", "neutral", "positive"),
    ("bad", "neither", "good"),
    ("unhappy", "indifferent", "happy"),
    ("NEGATIVE", "NEUTRAL", "POSITIVE"),
    ("critical", "balanced", "favourable"),
)
SIDE_TEXTS = (
    ("", "", ""),
    ("the writer dislikes it or feels bad", "no feeling either way", "the writer likes it or feels good"),
    ("an unfavourable tone", "a factual tone", "a favourable tone"),
)
SENTIMENT = (
    "What is the sentiment?",
    "Classify the sentiment.",
    "Is the tone positive or negative?",
    "How does the writer feel about it?",
    "Sentiment of the text:",
    "Judge the overall tone.",
    "What is the writer's attitude?",
)
# Yes/no questions, and the sign of the valence for which the answer is yes.
HOLDS = (
    ("Is the tone positive?", 1),
    ("The text is positive.", 1),
    ("Does the writer like it?", 1),
    ("Is this good news for somebody?", 1),
    ("Is the writer pleased?", 1),
    ("The sentiment is favourable.", 1),
    ("Is the tone negative?", -1),
    ("The text is negative.", -1),
    ("Is the writer unhappy?", -1),
    ("Does the writer criticize or complain?", -1),
    ("Is somebody upset here?", -1),
    ("The sentiment is unfavourable.", -1),
)
HOW_POSITIVE = (
    "How positive is the tone?",
    "Rate the sentiment.",
    "How does the writer feel?",
    "How satisfied does the writer sound?",
    "Overall mood:",
)
LEVELS = (
    ["very negative", "negative", "neutral", "positive", "very positive"],
    ["terrible", "bad", "okay", "good", "great"],
    ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"],
    ["very unhappy", "unhappy", "neither", "happy", "very happy"],
)
FAMILIES = {
    "joy": ("joy", "amusement", "excitement", "relief", "pride", "gratitude", "optimism"),
    "love": ("love", "caring"),
    "admiration": ("admiration", "approval"),
    "anger": ("anger", "annoyance", "disapproval"),
    "disgust": ("disgust",),
    "fear": ("fear", "nervousness"),
    "sadness": ("sadness", "grief", "disappointment", "remorse"),
    "surprise": ("surprise", "realization"),
    "curiosity": ("curiosity", "confusion"),
    "neutral": ("neutral",),
}
FAMILY_OF = {emotion: family for family, emotions in FAMILIES.items() for emotion in emotions}
# Love and admiration can also be read as joy, and anger and disgust as each other, so such near families are left out.
NEAR_FAMILIES = {
    "joy": ("love", "admiration"),
    "love": ("joy", "admiration"),
    "admiration": ("joy", "love"),
    "anger": ("disgust",),
    "disgust": ("anger",),
}
FEELING = (
    "Which emotion is it?",
    "What does the writer feel?",
    "Which feeling dominates?",
    "Classify the emotion.",
    "The mood of this text is:",
)


def sentiment(rng: Random, valence: int) -> Asked:
    """Returns the choice of positive or negative; neutral is an option whenever it is right, and sometimes when it is
    not."""
    places = [0, 1, 2] if valence == 0 or rng.random() < CHANCES.neutral_offered else [0, 2]
    rng.shuffle(places)
    target = one_hot(3, 0 if valence < 0 else 2 if valence > 0 else 1)
    if abs(valence) == 1 and 1 in places:
        doubt = CHANCES.mild_read_as_neither
        target = [(1 - doubt) * chance for chance in target]
        target[1] = doubt
    names, texts = rng.choice(SIDES), rng.choice(SIDE_TEXTS)
    asked = rng.choice(SENTIMENT)
    return Asked(choice(asked, {names[i]: texts[i] for i in places}), [target[i] for i in places])


def holds(rng: Random, valence: int) -> Asked:
    """Returns a yes/no question about the tone."""
    instructions, sign = rng.choice(HOLDS)
    yes = CHANCES.neutral_read_as_claimed if valence == 0 else float(valence * sign > 0)
    return Asked(noul(instructions), [1 - yes, yes])


def how_positive(rng: Random, valence: int) -> Asked:
    """Returns the question for the tone on three or five levels."""
    levels, target = rng.choice(LEVELS), FIVE[valence]
    if rng.random() < CHANCES.three_levels:
        levels, target = levels[::2], [target[0] + target[1], target[2], target[3] + target[4]]
    return Asked(score(rng.choice(HOW_POSITIVE), levels), list(target))


def family(rng: Random, label: str) -> Asked:
    """Returns the choice of an emotion's family among some of the others."""
    right = FAMILY_OF[label]
    others = [name for name in FAMILIES if name != right]
    names = [*rng.sample(others, rng.randint(2, len(others))), right]
    names = [name for name in names if name not in NEAR_FAMILIES.get(right, ())]
    rng.shuffle(names)
    asked = rng.choice(FEELING)
    return Asked(choice(asked, dict.fromkeys(names, "")), [float(name == right) for name in names])


def asked_of(rng: Random, label: str) -> list[Asked]:
    """Returns questions that an emotion answers; none for a label that is no emotion of the list."""
    if label not in VALENCE:
        return []
    makers = rng.sample((sentiment, holds, how_positive), rng.randint(1, 2))
    found = [make(rng, VALENCE[label]) for make in makers]
    asked = family(rng, label) if label in FAMILY_OF and rng.random() < CHANCES.family else None
    return [*found, asked] if asked and len(asked.target) > 1 else found
