"""Makes rows whose answers come from the base model: which of some phrases is most similar to a text in meaning.

Training on few label sets unlearns that knowledge; these rows keep it. The targets are soft: they are the softmax of
scaled cosines of the base model's sentence embeddings.
"""

import math
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any, Iterator

import numpy as np
import torch
from torch.nn import functional as F
from tqdm import tqdm

from ..generate import wishes as requests
from ..data import wording as words
from ..model.batches import by_length, collate
from ..data.layout import CHUNK, Group, encode
from ..model.encoder import WIDTH, load_model, pool
from ..data.rows import Row
from .teacher import taught

SOURCE = "likeness"
# A softmax over cosines times SHARPNESS is about as sure as it is right. It was fitted on lists of 3 to 60 intents, on
# six sources: 12 to 14 if half of them lack the right one, 18 to 24 if none does.
SHARPNESS = 16.0
# The longest text in tokens, which is part of one chunk, and the longest phrase in characters.
LONGEST_TEXT, LONGEST_PHRASE = CHUNK // 2, 80
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
# The share of questions with phrases of a kind, their wordings, and the cosine that "none of these" stands for. The
# cosine depends only on the kind: no option knows of the others, so it cannot grow with their number, although the best
# of many options that do not fit is nearer. Lists of intents are long and about one field, so their cosine is larger.
KINDS = {
    "topic": (3, words.TOPIC, 0.3),
    "intent": (3, words.INTENT, 0.43),
    "request": (5, words.INTENT, 0.43),
    "concept": (2, words.CONCEPT, 0.3),
    "text": (2, words.LIKE, 0.38),
}
COUNTS = (2, 3, 3, 4, 5, 6, 8, 10, 14, 20, 28, 40, 60)


@torch.no_grad()
def embedded(texts: list[str], max_tokens: int = 8192, bf16: bool = False) -> torch.Tensor:
    """Returns the base model's sentence embeddings of texts, each of length 1 [texts, width]; `bf16` is for cosines
    that need not be exact."""
    model, found = load_model().eval(), torch.empty(len(texts), WIDTH)
    rows = [encode(Group(SOURCE, text, []), LONGEST_TEXT) for text in tqdm(texts, desc="tokens", leave=False)]
    place = {id(row): i for i, row in enumerate(rows)}
    for group in tqdm(list(by_length(rows, max_tokens)), desc="embeddings", mininterval=5, leave=False):
        batch = collate(group)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            encoded = model.encode(batch)[0].float()
        mean = pool((batch.part > 0)[:, None].float(), encoded).squeeze(1)
        found[[place[id(row)] for row in group]] = F.normalize(mean, dim=-1)
    return found


def plain(state: Any) -> str:
    """Returns the longest text in a state."""
    if isinstance(state, str):
        return state
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    whole = "\n".join(state) if isinstance(state, list) and all(isinstance(part, str) for part in state) else ""
    return max([whole, *(plain(part) for part in parts)], key=len)


def meanings_of(texts: list[str], teacher: Path | None) -> torch.Tensor:
    """Returns the embeddings that define similarity: the base model's, concatenated with the teacher's if there is one,
    so that a cosine is the mean of both."""
    own = embedded(texts, bf16=teacher is not None)
    return own if teacher is None else torch.cat([own, taught(teacher, texts)], dim=1) / math.sqrt(2)


def cosines_of(rows: list[Row]) -> list[np.ndarray]:
    """Returns for each choice the cosines of its state's longest text with each option, by its description or its
    name."""
    options = [[text or words.humanized(name) for name, text in row.question["criteria"].items()] for row in rows]
    phrases = list(dict.fromkeys(phrase for own in options for phrase in own))
    places, named = {phrase: i for i, phrase in enumerate(phrases)}, embedded(phrases)
    meanings = embedded([plain(row.state) for row in rows])
    return [(named[[places[phrase] for phrase in own]] @ meaning).numpy() for own, meaning in zip(options, meanings)]


def drawn(rng: Random, found: dict[str, dict[str, None]], each: int) -> list[str]:
    """Returns at most `each` texts of each source, every text once."""
    kept = (rng.sample(list(own), min(each, len(own))) for _, own in sorted(found.items()))
    return list(dict.fromkeys(text for own in kept for text in own))


def texts_of(rng: Random, rows: list[Row]) -> list[str]:
    """Returns texts to ask about."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        text = plain(row.state)
        if 12 <= len(text) <= 1500:
            found[row.source][text] = None
    return list(dict.fromkeys([*drawn(rng, found, TEXTS_EACH), *(requests.messages(rng, MESSAGES) if found else ())]))


def phrases_of(rng: Random, rows: list[Row], texts: list[str]) -> dict[str, list[str]]:
    """Returns phrases to choose from, by kind."""
    labels: dict[str, dict[str, dict[str, None]]] = {kind: defaultdict(dict) for kind in ("intent", "concept")}
    for row in rows:
        kind = "intent" if row.source in INTENT_SOURCES else "concept" if row.source in CONCEPT_SOURCES else ""
        if kind and row.question["type"] == "choice":
            for name, text in row.question["criteria"].items():
                phrase = text or words.humanized(name)
                if 3 <= len(phrase) <= LONGEST_PHRASE:
                    labels[kind][row.source][phrase] = None
    found = {kind: drawn(rng, own, PHRASES_EACH) for kind, own in labels.items()}
    short = [text for text in texts if len(text) <= LONGEST_PHRASE]
    found |= {
        "topic": list(words.TOPICS),
        "request": rng.sample(requests.phrases(), PHRASES_EACH),
        "text": rng.sample(short, min(len(short), PHRASES_EACH)),
    }
    return {kind: own for kind, own in found.items() if len(own) > NEAREST}


def target_of(cosines: list[float]) -> list[float]:
    """Returns the distribution over options that follows from their cosines."""
    return [round(p, 4) for p in torch.softmax(SHARPNESS * torch.tensor(cosines, dtype=torch.float64), 0).tolist()]


def choice(rng: Random, text: str, kind: str, phrases: list[str], cosines: torch.Tensor, near: list[int]) -> Row:
    """Returns the question which of some phrases is most similar to a text; some of them are among the nearest,
    sometimes none is."""
    count = rng.choice(COUNTS)
    close = rng.sample(near[:NEAREST], rng.randint(1, min(4, count))) if rng.random() < 0.85 else []
    others = near if rng.random() < 0.4 else range(len(phrases))
    places = list(dict.fromkeys([*close, *rng.sample(others, min(count, len(others)))]))[: max(count, 2)]
    options = [(phrases[i], "", cosines[i].item()) for i in places if phrases[i] != text]
    if rng.random() < 0.4 or len(options) < 2:
        taken = {name for name, _, _ in options}
        options.append(
            (
                rng.choice([name for name in words.NONE_NAMES if name not in taken]),
                rng.choice(words.NONE_TEXTS),
                KINDS[kind][2],
            )
        )
    rng.shuffle(options)
    criteria = {name: described for name, described, _ in options}
    soft = target_of([cosine for _, _, cosine in options])
    question = {"type": "choice", "instructions": rng.choice(KINDS[kind][1]), "criteria": criteria}
    return Row(SOURCE, text, question, list(criteria)[soft.index(max(soft))], soft)


def yes_no(rng: Random, text: str, kind: str, phrases: list[str], cosines: torch.Tensor, near: list[int]) -> Row:
    """Returns the question whether a text is about a phrase: one that is near enough, one that is nearly near enough,
    or any."""
    nearest, none = near[:NEAREST], KINDS[kind][2]
    enough = [i for i in nearest if cosines[i] >= none]
    place = rng.choice(
        enough if enough and rng.random() < 0.55 else nearest if rng.random() < 0.4 else range(len(phrases))
    )
    soft = target_of([none, cosines[place].item()])
    return Row(
        SOURCE,
        text,
        {"type": "noul", "instructions": rng.choice(words.ABOUT).format(phrases[place])},
        soft[1] >= 0.5,
        soft,
    )


def likeness(rows: list[Row], seed: int, count: int, teacher: Path | None = None) -> Iterator[Row]:
    """Yields about `count` rows, three for each text; those of one text follow each other. `teacher` is the folder of a
    larger sentence encoder."""
    rng = Random(seed)
    texts = texts_of(rng, rows)
    texts = rng.sample(texts, min(len(texts), -(-count // 3)))
    if not texts:
        return
    phrases = phrases_of(rng, rows, texts)
    kinds, shares = list(phrases), [KINDS[kind][0] for kind in phrases]
    meanings, named = meanings_of(texts, teacher), {kind: meanings_of(own, teacher) for kind, own in phrases.items()}
    for text, meaning in zip(texts, meanings):
        for number in range(3):
            kind = rng.choices(kinds, shares)[0]
            cosines = named[kind] @ meaning
            near = cosines.topk(min(NEAR, len(cosines))).indices.tolist()
            if number < 2 or kind == "text":
                yield choice(rng, text, kind, phrases[kind], cosines, near)
            else:
                yield yes_no(rng, text, kind, phrases[kind], cosines, near)
