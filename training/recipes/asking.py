"""The many ways to ask yes or no about a text: as a claim, as a question, next to the text or about it, straight or as
the opposite.

A wording tells nothing about the answer: the side that is claimed is drawn at random, never taken from the label.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from ..data.groups import Asked, Group, Tie
from ..data.question import noul
from ..data.rows import State
from ..data.wording import as_lines, lower_first

Wording = TypeVar("Wording")


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms that all recipes share. Fields that end in `_below` divide one draw: each is the
    upper end of its part."""

    # Of a state.
    plain_text: float = 0.45
    extra_field: float = 0.2
    compact_json_below: float = 0.66
    spaced_json_below: float = 0.8
    indented_json_below: float = 0.84
    # Of a claim.
    claim_denied: float = 0.08
    claim_in_state: float = 0.2
    # Of a question.
    question_denied: float = 0.07
    question_in_state: float = 0.3
    question_agreed: float = 0.1
    capital_letter: float = 0.5
    question_mark: float = 0.7
    criteria: float = 0.1


CHANCES = Chances()

KEYS = (
    "text",
    "message",
    "content",
    "input",
    "body",
    "document",
    "passage",
    "note",
    "item",
    "entry",
    "data",
    "snippet",
)
CLAIM_KEYS = (
    "claim",
    "statement",
    "assertion",
    "hypothesis",
    "remark",
    "sentence",
    "verdict",
    "finding",
    "conclusion",
    "summary",
)
QUESTION_KEYS = ("question", "query", "asked", "q", "user_question", "prompt", "ask")
# Claims in a sentence of their own: {} is a clause, {S} the same with a capital letter and a full stop.
STRAIGHT = (
    "{S}",
    "{S}",
    "{S}",
    "Is it true that {}?",
    "True or false: {S}",
    "Is this right? {S}",
    "Decide whether {}.",
    "Claim: {S}",
    "Is it correct that {}?",
    "Check: {S}",
    "Would you say that {}?",
    "Does this hold: {S}",
    "{S} Yes or no?",
    "It is so that {}.",
    "Is the following statement true? {S}",
    "Can it be said that {}?",
    "A careful reader would agree that {}.",
    "Judge this statement: {S}",
    "Statement: {S}",
    "Does it hold that {}?",
    "Verify: {S}",
    "One can say that {}.",
)
DENYING = (
    "It is not true that {}.",
    "Is it false that {}?",
    "It is wrong to say that {}.",
    "Is this wrong: {S}",
    "The following is not so: {S}",
    "It is not the case that {}.",
    "Would it be a mistake to say that {}?",
    "This statement is false: {S}",
)
# Wordings for a claim that stands in the state, under {c}; {k} names the text.
BESIDE = (
    "Is `{c}` true of `{k}`?",
    "`{c}` is right.",
    "Does `{c}` fit `{k}`?",
    "Judge `{c}` by `{k}`.",
    "Is `{c}` correct?",
    "`{c}` holds.",
    "Given `{k}`, is `{c}` true?",
    "Is what `{c}` says true?",
    "`{c}`",
    "Check `{c}` against `{k}`: is it right?",
    "Does `{k}` bear out `{c}`?",
    "The reader of `{k}` can agree with `{c}`.",
)
BESIDE_DENYING = (
    "`{c}` is wrong.",
    "Is `{c}` false?",
    "`{k}` speaks against `{c}`.",
    "Is what `{c}` says untrue?",
    "Given `{k}`, `{c}` is a mistake.",
)
# Wordings for a question that stands in the state, under {q}.
QUESTIONED = (
    "Is the answer to `{q}` yes?",
    "The answer to `{q}` is yes.",
    "Answer `{q}` from `{k}`.",
    "Answer `{q}`.",
    "`{q}`",
    "Going by `{k}`, would you answer `{q}` with yes?",
    "Should `{q}` be answered with yes?",
    "Yes is the right answer to `{q}`.",
    "Read `{k}` and answer `{q}`.",
    "Does `{k}` say yes to `{q}`?",
    "What `{k}` says makes the answer to `{q}` a yes.",
)
QUESTIONED_DENYING = (
    "The answer to `{q}` is no.",
    "Is the answer to `{q}` no?",
    "Does `{k}` say no to `{q}`?",
    "Would no be the right answer to `{q}`?",
    "`{q}` has to be answered with no.",
)
# Wordings for a question as it is, or with some words around it.
PLAINLY = (
    "{}",
    "{}",
    "{}",
    "{}",
    "Question: {}",
    "{} Answer yes or no.",
    "Based on the text: {}",
    "Answer this: {}",
    "Please answer: {}",
    "From what is given here, {}",
    "Yes or no: {}",
    "Q: {}",
    "{} Go by the text.",
    "Tell me: {}",
)
OPPOSED = (
    "Is the answer to this question no? {}",
    "No is the right answer to: {}",
    '"{}" - the answer is no.',
    "Would you answer this with no? {}",
)
AGREED = (
    "Is the answer to this question yes? {}",
    "Yes is the right answer to: {}",
    '"{}" - the answer is yes.',
    "Would you answer this with yes? {}",
)
SIDES = (
    ("true", "false"),
    ("yes", "no"),
    ("it is so", "it is not so"),
    ("the statement holds", "it does not"),
    ("correct", "incorrect"),
    ("agree", "disagree"),
)
# One in this many of each tuple's wordings is used only for held-out rows.
HELD_OUT_SHARE = 5


class Draw(Random):
    """A random generator that knows which wordings it may draw."""

    held_out = False


def pick(rng: Random, wordings: Sequence[Wording]) -> Wording:
    """Returns one of the wordings: of the last fifth for held-out rows, of the others for the rest. If there are only a
    few wordings, all are for both."""
    wordings = tuple(wordings)
    kept = len(wordings) // HELD_OUT_SHARE if len(wordings) >= HELD_OUT_SHARE else 0
    if not kept:
        return rng.choice(wordings)
    return rng.choice(wordings[-kept:] if getattr(rng, "held_out", False) else wordings[:-kept])


@dataclass
class Scene:
    """A state while it is put together: its named parts, and the name of the main part, which is asked about. The key
    is None if the state is plain text."""

    parts: dict[str, State]
    key: str | None
    noun: str
    asked: list[Asked] = field(default_factory=list)
    ties: list[Tie] = field(default_factory=list)

    def it(self, rng: Random) -> str:
        """Returns a name of the main part for a question."""
        noun = f"the {self.noun}"
        if self.key is None:
            return rng.choice((noun, noun, "the text", f"this {self.noun}", "this"))
        key = f"`{self.key}`"
        return rng.choice((key, key, noun, f"{noun} in {key}", f"this {self.noun}"))

    def free(self, rng: Random, keys: tuple[str, ...]) -> str:
        """Returns a key that no part has."""
        return rng.choice([key for key in keys if key not in self.parts])

    def add_part(self, rng: Random, key: str, value: State) -> None:
        """Adds a part at a random place, and mixes the others."""
        self.parts = dict(rng.sample([*self.parts.items(), (key, value)], len(self.parts) + 1))

    def ask(self, asked: Asked) -> int:
        """Adds a question, and returns its index."""
        self.asked.append(asked)
        return len(self.asked) - 1

    def group(self, rng: Random, source: str) -> Group:
        """Returns the state as text, with the questions about it."""
        return Group(source, self.text(rng), self.asked, self.ties)

    def text(self, rng: Random) -> str:
        """Returns the state in a form that people send; parts that a question names keep their names."""
        if self.key is None and len(self.parts) == 1:
            return str(next(iter(self.parts.values())))
        draw = rng.random()
        if draw < CHANCES.compact_json_below:
            return json.dumps(self.parts, ensure_ascii=False, separators=(",", ":"))
        if draw < CHANCES.spaced_json_below:
            return json.dumps(self.parts, ensure_ascii=False)
        if draw < CHANCES.indented_json_below:
            return json.dumps(self.parts, ensure_ascii=False, indent=1)
        return as_lines(self.parts)


def scene(rng: Random, text: State, nouns: tuple[str, ...], plain: float = CHANCES.plain_text) -> Scene:
    """Returns a text as a state of its own (with the probability `plain`), under a key, or among other fields."""
    noun = rng.choice(nouns)
    if isinstance(text, str) and rng.random() < plain:
        return Scene({"": text}, None, noun)
    own = noun.replace(" ", "_")
    key = rng.choice((own, own, rng.choice(KEYS)))
    return Scene(fields_of(rng, key, text), key, noun)


def fields_of(rng: Random, key: str, text: State, chance: float = CHANCES.extra_field) -> dict[str, State]:
    """Returns a text under a key, with the probability `chance` beside another field."""
    if rng.random() < chance:
        return dict(rng.sample([(key, text), extra_field(rng)], 2))
    return {key: text}


def extra_field(rng: Random) -> tuple[str, State]:
    """Returns a field that often stands beside a text."""
    number, source = rng.randrange(10**6), rng.choice(("web", "app", "import", "archive"))
    day = f"20{rng.randint(10, 26)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    fields: tuple[tuple[str, State], ...] = (("id", number), ("source", source), ("language", "en"), ("received", day))
    return rng.choice(fields)


def clause(text: str) -> str:
    """Returns a statement in the form that stands inside a sentence."""
    return lower_first(text)


def whole(text: str) -> str:
    """Returns a statement as a sentence of its own."""
    text = text.strip()
    return capitalized(text) + ("" if text[-1:] in ".?!" else ".")


def capitalized(text: str) -> str:
    """Returns a text with a capital first letter, unless it begins with a key."""
    return text[:1].upper() + text[1:] if text[:1] != "`" else text


def filled(wording: str, statement: str) -> str:
    """Returns a wording with a statement in it: as a sentence at {S}, as a clause at {}."""
    return wording.replace("{S}", whole(statement)).replace("{}", clause(statement))


def sides(rng: Random) -> dict[str, str]:
    """Returns criteria that say what yes and no stand for."""
    yes, no = rng.choice(SIDES)
    return rng.choice(({"true": yes, "false": no}, {"true": yes}, {"false": no}))


def asked_noul(rng: Random, instructions: str, yes: float) -> Asked:
    """Returns a yes/no question, sometimes with criteria; `yes` is the probability that yes is right."""
    criteria = sides(rng) if rng.random() < CHANCES.criteria else None
    return Asked(noul(instructions, criteria), [1 - yes, yes])


def said(rng: Random, into: Scene, text: str, yes: float) -> int:
    """Asks whether a statement holds, in some way, and returns the index of the question; `yes` is the probability that
    it holds."""
    deny = rng.random() < CHANCES.claim_denied
    # At most one claim stands in a state, because its key has to be the only one of its kind.
    has_claim = bool(set(into.parts) & set(CLAIM_KEYS))
    if into.key is not None and not has_claim and rng.random() < CHANCES.claim_in_state:
        key = into.free(rng, CLAIM_KEYS)
        into.add_part(rng, key, whole(text))
        wording = pick(rng, BESIDE_DENYING if deny else BESIDE).format(c=key, k=into.key)
    else:
        wording = pick(rng, DENYING if deny else STRAIGHT)
        # Braces of the statement itself are left out of a sentence.
        wording = filled(wording, text) if "{}" in wording else wording.replace("{S}", whole(text)).replace("{}", "")
    return into.ask(asked_noul(rng, wording, 1 - yes if deny else yes))


def questioned(rng: Random, into: Scene, text: str, yes: float) -> int:
    """Asks a yes/no question, in some way, and returns its index; `yes` is the probability that yes is right."""
    deny = rng.random() < CHANCES.question_denied
    text = manner(rng, text)
    has_question = bool(set(into.parts) & set(QUESTION_KEYS))
    if into.key is not None and not has_question and rng.random() < CHANCES.question_in_state:
        key = into.free(rng, QUESTION_KEYS)
        into.add_part(rng, key, text)
        wording = pick(rng, QUESTIONED_DENYING if deny else QUESTIONED).format(q=key, k=into.key)
    elif deny:
        wording = pick(rng, OPPOSED).format(text)
    else:
        wordings = AGREED if rng.random() < CHANCES.question_agreed else PLAINLY
        wording = pick(rng, wordings).format(text)
    return into.ask(asked_noul(rng, wording, 1 - yes if deny else yes))


def manner(rng: Random, text: str) -> str:
    """Returns a question with its first letter and its question mark in a way that some people write them."""
    text = text.strip()
    text = text[:1].upper() + text[1:] if rng.random() < CHANCES.capital_letter else text
    return text.rstrip("?") + "?" if rng.random() < CHANCES.question_mark else text.rstrip("?")
