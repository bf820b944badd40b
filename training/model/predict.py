"""Computes the logits of a checkpoint for rows."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from tqdm import tqdm

from ..data.layout import encode, unlabelled
from ..data.rows import Row
from .batches import Batch, by_length, collate
from .encoder import Model


@dataclass(frozen=True)
class Reading:
    """How rows are read: on a device, states up to `state_max` tokens, batches of up to `max_tokens`."""

    device: str = "cpu"
    state_max: int = 2048
    max_tokens: int = 8192


BY_DEFAULT = Reading()


def predict(model: Model, rows: list[Row], reading: Reading = BY_DEFAULT) -> list[torch.Tensor]:
    """Returns each row's logits, in the order of its options."""
    return scored(model, rows, model, reading)


@torch.no_grad()
def scored(
    model: Model, rows: list[Row], score: Callable[[Batch], torch.Tensor], reading: Reading, before: int = 0
) -> list[torch.Tensor]:
    """Returns the result of `score` for each row's question: `before` numbers, then one for each option."""
    model.eval().to(reading.device)
    encoded = [encode(unlabelled(row.source, row.state, row.question), reading.state_max) for row in rows]
    place = {id(row): i for i, row in enumerate(encoded)}
    results: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for group in tqdm(list(by_length(encoded, reading.max_tokens)), desc="rows", mininterval=5, leave=False):
        for row, logits in zip(group, score(collate(group).to(reading.device)).cpu()):
            results[place[id(row)]] = logits[: before + len(row.markers[0])]
    return results
