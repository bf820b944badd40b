"""Batches in other words: some words of a text are replaced by near ones, so that a larger encoder can answer about
texts that nobody wrote (Jiao et al. 2020, TinyBERT, section 3)."""

from dataclasses import replace

import torch
from torch.nn import functional as F

from ..data.layout import tokenizer
from ..model.batches import Batch, Ties

# The near words from which a replacement is drawn.
NEAR = 12
# The share of words that are replaced: of a state, and of a question.
OF_STATE, OF_QUESTION = 0.12, 0.06
ROWS_AT_ONCE = 2048


@torch.no_grad()
def near_words(words: torch.Tensor) -> torch.Tensor:
    """Returns the tokens nearest to each token [vocabulary, near] by word embeddings [vocabulary, width]; those of a
    token that is no whole word are itself."""
    vocabulary = tokenizer().get_vocab()
    whole = torch.zeros(len(words), dtype=torch.bool)
    # No part of a word and no special token consists of letters alone.
    whole[[i for word, i in vocabulary.items() if word.isascii() and word.isalpha()]] = True
    whole = whole.to(words.device)
    unit = F.normalize(words.float(), dim=-1)
    found = torch.arange(len(words), device=words.device)[:, None].repeat(1, NEAR)
    for start in range(0, len(words), ROWS_AT_ONCE):
        cosines = unit[start : start + ROWS_AT_ONCE] @ unit.T
        cosines.masked_fill_(~whole, -2)
        nearest = cosines.topk(NEAR + 1).indices[:, 1:]
        found[start : start + ROWS_AT_ONCE] = torch.where(
            whole[start : start + ROWS_AT_ONCE, None], nearest, found[start : start + ROWS_AT_ONCE]
        )
    return found


def in_other_words(batch: Batch, near: torch.Tensor) -> Batch:
    """Returns a batch with some words of its states and questions replaced, without answers and ties, since neither
    need hold of the new words. The words of options stay."""
    share = torch.where(batch.part > 0, OF_STATE, OF_QUESTION)
    changed = (torch.rand(batch.ids.shape, device=batch.ids.device) < share) & (batch.option == 0)
    drawn = torch.randint(NEAR, batch.ids.shape, device=batch.ids.device)
    ids = torch.where(changed, near[batch.ids, drawn], batch.ids)
    none = Ties(batch.ties.terms[:0], batch.ties.signs[:0], batch.ties.at_most[:0])
    return replace(
        batch,
        ids=ids,
        target=torch.zeros_like(batch.target),
        meant=torch.zeros_like(batch.meant),
        whole=torch.zeros_like(batch.whole),
        ties=none,
    )
