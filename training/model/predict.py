"""Computes the logits of a checkpoint for rows."""

from typing import Callable

import torch
from tqdm import tqdm

from .batches import Batch, by_length, collate
from ..data.layout import Asked, Group, encode, state_text
from .encoder import Model
from ..data.rows import Row, option_count


def predict(
    model: Model, rows: list[Row], device: str = "cpu", state_max: int = 2048, max_tokens: int = 8192
) -> list[torch.Tensor]:
    """Returns each row's logits, in the order of its options. A state is read up to `state_max` tokens."""
    return scored(model, rows, model, device, state_max, max_tokens)


@torch.no_grad()
def scored(
    model: Model,
    rows: list[Row],
    score: Callable[[Batch], torch.Tensor],
    device: str,
    state_max: int,
    max_tokens: int,
    before: int = 0,
) -> list[torch.Tensor]:
    """Returns the result of `score` for each row's question: `before` numbers, then one for each option."""
    model.eval().to(device)
    encoded = [
        encode(
            Group(row.source, state_text(row.state), [Asked(row.question, [0.0] * option_count(row.question))]),
            state_max,
        )
        for row in rows
    ]
    place = {id(row): i for i, row in enumerate(encoded)}
    results: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for group in tqdm(list(by_length(encoded, max_tokens)), desc="rows", mininterval=5, leave=False):
        for row, logits in zip(group, score(collate(group).to(device)).cpu()):
            results[place[id(row)]] = logits[: before + len(row.markers[0])]
    return results
