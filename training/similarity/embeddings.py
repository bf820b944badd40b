"""Sentence embeddings: the base model's, and with a teacher also those of a larger encoder."""

import math
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F
from tqdm import tqdm

from ..data import wording as words
from ..data.groups import Group
from ..data.layout import CHUNK, encode
from ..data.question import Choice
from ..data.rows import LIKENESS, State
from ..model.batches import by_length, collate
from ..model.encoder import WIDTH, pool
from ..model.weights import load_model
from .teacher import taught

# The longest text in tokens, which is part of one chunk.
LONGEST_TEXT = CHUNK // 2


@torch.no_grad()
def embedded(texts: list[str], max_tokens: int = 8192, bf16: bool = False) -> torch.Tensor:
    """Returns the base model's sentence embeddings of texts, each of length 1 [texts, width]; `bf16` is for cosines
    that need not be exact."""
    model, found = load_model().eval(), torch.empty(len(texts), WIDTH)
    rows = [encode(Group(LIKENESS, text, []), LONGEST_TEXT) for text in tqdm(texts, desc="tokens", leave=False)]
    place = {id(row): i for i, row in enumerate(rows)}
    for group in tqdm(list(by_length(rows, max_tokens)), desc="embeddings", mininterval=5, leave=False):
        batch = collate(group)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            encoded = model.encode(batch)[0].float()
        mean = pool((batch.part > 0)[:, None].float(), encoded).squeeze(1)
        found[[place[id(row)] for row in group]] = F.normalize(mean, dim=-1)
    return found


def plain(state: State) -> str:
    """Returns the longest text in a state."""
    if isinstance(state, str):
        return state
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    whole = "\n".join(state) if isinstance(state, list) and all(isinstance(part, str) for part in state) else ""
    return max([whole, *(plain(part) for part in parts)], key=len)


def meanings_of(texts: list[str], teacher: Path | None, bf16: bool = False) -> torch.Tensor:
    """Returns the embeddings that define similarity: the base model's, concatenated with the teacher's if there is one,
    so that a cosine is the mean of both."""
    own = embedded(texts, bf16=bf16)
    return own if teacher is None else torch.cat([own, taught(teacher, texts, bf16=bf16)], dim=1) / math.sqrt(2)


class Meanings:
    """The base model's embeddings of texts, each of which is read once."""

    def __init__(self) -> None:
        self.found: dict[str, torch.Tensor] = {}

    def of(self, texts: list[str]) -> torch.Tensor:
        """Returns the embeddings of texts [texts, width]."""
        new = list(dict.fromkeys(text for text in texts if text not in self.found))
        self.found.update(zip(new, embedded(new)) if new else ())
        return torch.stack([self.found[text] for text in texts])


def cosines_of(asked: list[tuple[State, Choice]], meanings: Meanings) -> list[np.ndarray]:
    """Returns for each choice about a state the cosines of the state's longest text with each option, by its
    description or its name."""
    options = [[text or words.humanized(name) for name, text in question["criteria"].items()] for _, question in asked]
    # All phrases are read before the first choice, in batches.
    meanings.of(list(dict.fromkeys(phrase for own in options for phrase in own)))
    states = meanings.of([plain(state) for state, _ in asked])
    return [(meanings.of(own) @ state).numpy() for own, state in zip(options, states)]
