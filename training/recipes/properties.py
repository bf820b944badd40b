"""Asks about properties of a text: spam, an attack, clickbait, sarcasm, a good question, abuse. Each is claimed and
asked about from both sides. A source's own property holds for half of the texts, so that neither side tells anything
about the answer; at times, texts are also asked about properties that none of their source has."""

from dataclasses import dataclass
from random import Random

from ..data.groups import YES, Asked, Group, Tie
from ..data.question import choice
from ..data.rows import Row, State
from ..generate import comments
from .asking import Scene, pick, questioned, said, scene
from .wordings.properties import (
    ATTACK,
    CLICKBAIT,
    HATE,
    OPINION,
    SARCASM,
    SPAM,
    TOXIC,
    WELL_FORMED,
    Property,
)


@dataclass(frozen=True)
class Chances:
    """The probabilities of the questions about a property, and of what generated comments say. Fields that end in
    `_below` divide one draw: each is the upper end of its part."""

    # The side that names the property: with both sides equally often, a small encoder learns too slowly what they are
    # about, because an answer then hangs on the side as much as on the text.
    positive: float = 0.8
    said: float = 0.55
    chosen: float = 0.3
    hate_of_abuse: float = 0.35
    absent: float = 0.35
    tied: float = 0.3
    # Of a generated comment.
    hate_below: float = 0.3
    attack_below: float = 0.6
    harmless_about_identity: float = 0.75
    second_statement: float = 0.5
    second_about_identity: float = 0.5
    # Of a text of `ABUSIVE` that names one.
    other_identity: float = 0.6
    as_written: float = 0.85
    hate_asked: float = 0.7


CHANCES = Chances()
# The source of generated comments that attack somebody; with another name than that of harmless ones, so that a run can
# correct these alone.
ATTACKS = "attacks"
# Sources of abuse, whose texts are as abusive about others.
ABUSIVE = frozenset({"davidson", "toxigen"})
# Words in the instructions of a yes/no row by which yes means that the property does not hold.
OPPOSITES = {
    "spamassassin": ("genuine", "legitimate", "inbox"),
    "prompt_injection_mix": ("safe to pass", "harmless", "normal request"),
    "clickbait": ("straight", "plainly", "reports"),
    "mustard": ("sincere",),
    "query_wellformedness": ("rewriting", "mistake"),
    "product_reviews": (),
}
BY_SOURCE = {
    "spamassassin": SPAM,
    "prompt_injection_mix": ATTACK,
    "clickbait": CLICKBAIT,
    "mustard": SARCASM,
    "query_wellformedness": WELL_FORMED,
    "davidson": TOXIC,
    "toxigen": HATE,
}
# Properties that no text of a source has, whatever else it is: bad texts of one kind are not bad in every way.
ABSENT = {
    "spamassassin": (ATTACK, SARCASM),
    "prompt_injection_mix": (SPAM, SARCASM, CLICKBAIT),
    "clickbait": (ATTACK, SARCASM, HATE),
    "mustard": (SPAM, ATTACK, HATE),
    "query_wellformedness": (SPAM, ATTACK, SARCASM, TOXIC, HATE),
    "davidson": (SPAM, ATTACK),
    "toxigen": (SPAM, ATTACK, CLICKBAIT),
    "product_reviews": (ATTACK, HATE),
    "persona": (SPAM, ATTACK, CLICKBAIT),
    "nlupp": (SPAM, ATTACK, SARCASM, HATE),
    "sgd": (SPAM, ATTACK, SARCASM, TOXIC),
    "multidogo": (SPAM, ATTACK, SARCASM),
    "slurp_devtest": (SPAM, ATTACK, SARCASM, TOXIC),
    "home_intents": (SPAM, ATTACK, SARCASM, TOXIC),
    "cfpb_other": (SPAM, ATTACK, CLICKBAIT, HATE),
    "comments": (SPAM, SPAM, ATTACK, SARCASM),
}
HOLDING_LABELS = frozenset({"spam", "attack", "injection", "clickbait", "sarcastic", "offensive", "hate_speech"})
OPINION_ASKED = ("gives an opinion", "praise or criticism", "judge the product")


# The keys of a state's main part.
MAIN_KEYS = ("reply", "user", "content", "body", "sentence", "input", "prompt", "text")


def property_of(row: Row) -> tuple[Property, float] | None:
    """Returns the property that a row is about, and the probability that it holds; None if the row is about no
    property."""
    source, asked, kind = row.source, row.question["instructions"], row.question["type"]
    if source == "product_reviews":
        is_opinion = kind == "noul" and any(words in asked for words in OPINION_ASKED)
        return (OPINION, float(row.label)) if is_opinion else None
    known = BY_SOURCE.get(source)
    if known is None or kind == "score":
        return None
    if source == "davidson" and row.soft is not None:
        return known, row.soft[0] + row.soft[1]
    if kind == "choice":
        return known, float(row.label in HOLDING_LABELS)
    opposed = any(words in asked for words in OPPOSITES.get(source, ()))
    return known, float(bool(row.label) != opposed)


def about(rng: Random, row: Row, known: Property, holds: float) -> Group:
    """Returns two to five yes/no questions about one property of a text, and at times a choice."""
    state = row.state
    if row.source in ABUSIVE and isinstance(state, str) and rng.random() < CHANCES.other_identity:
        state = comments.about_others(rng, state)
    into = staged(rng, state, known.nouns)
    for _ in range(rng.choice((2, 3, 4, 5))):
        ask(rng, into, known, holds)
    if rng.random() < CHANCES.chosen:
        into.ask(choose(rng, into, known, holds))
    if row.source == "davidson" and rng.random() < CHANCES.hate_of_abuse:
        ask(rng, into, HATE, row.soft[0] if row.soft else float(row.label == "hate_speech"))
    ask_absent(rng, into, row.source, CHANCES.absent)
    if len(into.asked) > 1 and rng.random() < CHANCES.tied:
        into.ties += tie_of((0, into.asked[0]), (1, into.asked[1]))
    return into.group(rng, row.source)


def moderated(rng: Random, source: str) -> Group:
    """Returns a generated comment: three in five attack somebody, since texts that never do, such as wishes of a smart
    home's users, are asked about it too; most of the rest name somebody's identity, which is no attack. The question
    whether groups are attacked is added if the answer is known, and at times one about a property that no comment
    has. Only a harmless comment has the given source."""
    kind, text = commented(rng)
    into = scene(rng, text, TOXIC.nouns)
    for _ in range(rng.choice((1, 2, 2))):
        ask(rng, into, TOXIC, float(kind != comments.NONE))
    if kind != "contempt" and rng.random() < CHANCES.hate_asked:
        ask(rng, into, HATE, float(kind == "hate"))
    ask_absent(rng, into, source, CHANCES.absent)
    return into.group(rng, source if kind == comments.NONE else ATTACKS)


def commented(rng: Random) -> tuple[str, str]:
    """Returns the kind of a generated comment, and the comment."""
    texts: tuple[str, ...]
    draw = rng.random()
    if draw < CHANCES.hate_below:
        kind, texts = "hate", comments.AGAINST
    elif draw < CHANCES.attack_below:
        kind = rng.choice(("insult", "threat", "obscene", "contempt"))
        texts = comments.ATTACKS[kind]
    else:
        kind, texts = comments.NONE, harmless(rng, CHANCES.harmless_about_identity)
    parts = [comments.said(rng, rng.choice(texts))]
    if rng.random() < CHANCES.second_statement:
        place, others = rng.randint(0, 1), harmless(rng, CHANCES.second_about_identity)
        parts.insert(place, comments.said(rng, rng.choice(others)))
    text = " ".join(part[0].upper() + part[1:] + full_stop(rng, part) for part in parts)
    return kind, text if rng.random() < CHANCES.as_written else text.lower()


def harmless(rng: Random, about_identity: float) -> tuple[str, ...]:
    """Returns statements that attack nobody: about somebody's identity with the given probability."""
    return comments.ABOUT if rng.random() < about_identity else comments.HARMLESS


def full_stop(rng: Random, part: str) -> str:
    """Returns the end of a sentence; nothing if the sentence has one."""
    return "" if part[-1] in "?!." else rng.choice((".", ".", "!", ""))


def staged(rng: Random, state: State, nouns: tuple[str, ...]) -> Scene:
    """Returns a row's state as a scene: only its text, or its fields as they are."""
    if isinstance(state, str) or (isinstance(state, dict) and len(state) == 1):
        text = state if isinstance(state, str) else next(iter(state.values()))
        return scene(rng, text, nouns)
    noun = rng.choice(nouns)
    main = next((key for key in MAIN_KEYS if key in state), next(iter(state)))
    return Scene(dict(state), main, noun)


def ask(rng: Random, into: Scene, known: Property, holds: float) -> int:
    """Asks one question about a property, from a side that is drawn without a look at the answer."""
    positive, it = rng.random() < CHANCES.positive, into.it(rng)
    yes = holds if positive else 1 - holds
    if rng.random() < CHANCES.said:
        return said(rng, into, pick(rng, known.holds if positive else known.fails).format(it), yes)
    return questioned(rng, into, pick(rng, known.asked if positive else known.opposed).format(it), yes)


def ask_absent(rng: Random, into: Scene, source: str, chance: float) -> None:
    """Asks, with the given probability, about a property that no text of the source has."""
    if source in ABSENT and rng.random() < chance:
        ask(rng, into, rng.choice(ABSENT[source]), 0.0)


def choose(rng: Random, into: Scene, known: Property, holds: float) -> Asked:
    """Asks about the property as a choice of two, in random order."""
    names, texts = rng.choice(known.names), rng.choice(known.texts)
    options = [(names[0], texts[0], holds), (names[1], texts[1], 1 - holds)]
    rng.shuffle(options)
    asked = pick(rng, known.choose).format(into.it(rng))
    return Asked(choice(asked, {name: text for name, text, _ in options}), [chance for _, _, chance in options])


def tie_of(one: tuple[int, Asked], other: tuple[int, Asked]) -> list[Tie]:
    """Returns the tie of two questions about one thing, each with its index in a group: their answers are equally
    likely, or one is as likely as the opposite of the other. There is none if one of them is no yes/no question."""
    (first, asked), (second, also_asked) = one, other
    if any(question["type"] != "noul" for question in (asked.question, also_asked.question)):
        return []
    yes = asked.target[YES]
    place = next((i for i in (1, 0) if abs(yes - also_asked.target[i]) < 1e-9), None)
    return [] if place is None else [Tie(((first, YES),), ((second, place),))]
