"""Makes rows whose answers come from sentence encoders: which of some phrases is most similar to a text in meaning.

Training on few label sets unlearns that knowledge; these rows keep it. The targets are soft: they are the softmax of
scaled cosines of sentence embeddings.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch

from ..data import wording as words
from ..data.question import choice, noul
from ..data.rows import LIKENESS, Row
from ..generate import wishes
from .embeddings import meanings_of, plain

# A softmax over cosines times SHARPNESS is about as sure as it is right. It was fitted on lists of 3 to 60 intents, on
# six sources: 12 to 14 if half of them lack the right one, 18 to 24 if none does.
SHARPNESS = 16.0
# The lengths of a text and of a phrase, in characters.
TEXT_LENGTHS, PHRASE_LENGTHS = range(12, 1501), range(3, 81)
TEXTS_EACH, PHRASES_EACH, MESSAGES = 2500, 3000, 6000
# The fitting phrases are drawn from this many nearest ones, and the nearly fitting from this many: a service's labels
# are all about its field.
NEAREST, NEAR = 20, 250
INTENT_SOURCES = frozenset(
    {
        "hwu64_fold1",
        "rasa",
        "snips",
        "sgd",
        "multidogo",
        "nlupp",
        "slurp_devtest",
        "home_intents",
        "rasa_bots",
        "nlu_eval_corpora",
    }
)
# Sources whose options are words that stand for themselves.
CONCEPT_SOURCES = frozenset({"commonsenseqa"})
COUNTS = (2, 3, 3, 4, 5, 6, 8, 10, 14, 20, 28, 40, 60)


@dataclass(frozen=True)
class Kind:
    """A kind of phrases: the share of the questions that have it, their wordings, and the cosine that "none of these"
    stands for.

    The cosine depends only on the kind: no option knows of the others, so it cannot grow with their number, although
    the best of many options that do not fit is nearer. Lists of intents are long and about one field, so their cosine
    is larger.
    """

    share: float
    asked: tuple[str, ...]
    none: float


KINDS = {
    "topic": Kind(3, words.TOPIC, 0.3),
    "intent": Kind(3, words.INTENT, 0.43),
    "request": Kind(5, words.INTENT, 0.43),
    "concept": Kind(2, words.CONCEPT, 0.3),
    "text": Kind(2, words.LIKE, 0.38),
}


@dataclass(frozen=True)
class Chances:
    """The probabilities of what is asked about a text."""

    nearest_offered: float = 0.85
    others_near: float = 0.4
    none_offered: float = 0.4
    # Of a yes/no question.
    near_enough: float = 0.55
    nearest: float = 0.4


CHANCES = Chances()


@dataclass
class Compared:
    """A text and phrases of one kind, their cosines, and the indices of the nearest phrases, the nearest first."""

    text: str
    kind: Kind
    phrases: list[str]
    cosines: torch.Tensor
    near: list[int]


def drawn(rng: Random, found: dict[str, dict[str, None]], each: int) -> list[str]:
    """Returns at most `each` texts of each source, every text once."""
    kept = (rng.sample(list(own), min(each, len(own))) for _, own in sorted(found.items()))
    return list(dict.fromkeys(text for own in kept for text in own))


def texts_of(rng: Random, rows: list[Row]) -> list[str]:
    """Returns texts to ask about."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        text = plain(row.state)
        if len(text) in TEXT_LENGTHS:
            found[row.source][text] = None
    return list(dict.fromkeys([*drawn(rng, found, TEXTS_EACH), *(wishes.messages(rng, MESSAGES) if found else ())]))


def phrases_of(rng: Random, rows: list[Row], texts: list[str]) -> dict[str, list[str]]:
    """Returns phrases to choose from, by kind."""
    found = {kind: drawn(rng, own, PHRASES_EACH) for kind, own in labels_of(rows).items()}
    short = [text for text in texts if len(text) < PHRASE_LENGTHS.stop]
    found["topic"] = list(words.TOPICS)
    found["request"] = rng.sample(wishes.phrases(), PHRASES_EACH)
    found["text"] = rng.sample(short, min(len(short), PHRASES_EACH))
    return {kind: own for kind, own in found.items() if len(own) > NEAREST}


def labels_of(rows: list[Row]) -> dict[str, dict[str, dict[str, None]]]:
    """Returns the options' meanings by kind and source, every one once."""
    labels: dict[str, dict[str, dict[str, None]]] = {kind: defaultdict(dict) for kind in ("intent", "concept")}
    for row in rows:
        kind = "intent" if row.source in INTENT_SOURCES else "concept" if row.source in CONCEPT_SOURCES else ""
        if kind and row.question["type"] == "choice":
            for name, text in row.question["criteria"].items():
                phrase = text or words.humanized(name)
                if len(phrase) in PHRASE_LENGTHS:
                    labels[kind][row.source][phrase] = None
    return labels


def target_of(cosines: list[float]) -> list[float]:
    """Returns the distribution over options that follows from their cosines."""
    return [round(p, 4) for p in torch.softmax(SHARPNESS * torch.tensor(cosines, dtype=torch.float64), 0).tolist()]


def choice_row(rng: Random, compared: Compared) -> Row:
    """Returns the question which of some phrases is most similar to a text; some of them are among the nearest,
    sometimes none is."""
    near, phrases, count = compared.near, compared.phrases, rng.choice(COUNTS)
    close = []
    if rng.random() < CHANCES.nearest_offered:
        close = rng.sample(near[:NEAREST], rng.randint(1, min(4, count)))
    others = near if rng.random() < CHANCES.others_near else range(len(phrases))
    places = list(dict.fromkeys([*close, *rng.sample(others, min(count, len(others)))]))[: max(count, 2)]
    options = [(phrases[i], "", compared.cosines[i].item()) for i in places if phrases[i] != compared.text]
    if rng.random() < CHANCES.none_offered or len(options) < 2:
        taken = {name for name, _, _ in options}
        none = rng.choice([name for name in words.NONE_NAMES if name not in taken])
        options.append((none, rng.choice(words.NONE_TEXTS), compared.kind.none))
    rng.shuffle(options)
    criteria = {name: described for name, described, _ in options}
    soft = target_of([cosine for _, _, cosine in options])
    question = choice(rng.choice(compared.kind.asked), criteria)
    return Row(LIKENESS, compared.text, question, list(criteria)[soft.index(max(soft))], soft)


def noul_row(rng: Random, compared: Compared) -> Row:
    """Returns the question whether a text is about a phrase: one that is near enough, one that is nearly near enough,
    or any."""
    nearest, none = compared.near[:NEAREST], compared.kind.none
    enough = [i for i in nearest if compared.cosines[i] >= none]
    if enough and rng.random() < CHANCES.near_enough:
        place = rng.choice(enough)
    else:
        place = rng.choice(nearest if rng.random() < CHANCES.nearest else range(len(compared.phrases)))
    soft = target_of([none, compared.cosines[place].item()])
    question = noul(rng.choice(words.ABOUT).format(compared.phrases[place]))
    return Row(LIKENESS, compared.text, question, soft[1] >= 0.5, soft)


def likeness(rows: list[Row], seed: int, count: int, teacher: Path | None = None, bf16: bool = False) -> Iterator[Row]:
    """Yields about `count` rows, three for each text; those of one text follow each other. `teacher` is the folder of a
    larger sentence encoder; `bf16` computes embeddings with products in bfloat16."""
    rng = Random(seed)
    texts = texts_of(rng, rows)
    texts = rng.sample(texts, min(len(texts), -(-count // 3)))
    if not texts:
        return
    phrases = phrases_of(rng, rows, texts)
    kinds, shares = list(phrases), [KINDS[kind].share for kind in phrases]
    meanings = meanings_of(texts, teacher, bf16)
    named = {kind: meanings_of(own, teacher, bf16) for kind, own in phrases.items()}
    for text, meaning in zip(texts, meanings):
        for number in range(3):
            kind = rng.choices(kinds, shares)[0]
            cosines = named[kind] @ meaning
            near = cosines.topk(min(NEAR, len(cosines))).indices.tolist()
            compared = Compared(text, KINDS[kind], phrases[kind], cosines, near)
            yield choice_row(rng, compared) if number < 2 or kind == "text" else noul_row(rng, compared)
