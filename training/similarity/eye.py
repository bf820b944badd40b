"""Initialises the similarity term as the best linear estimate of the base model's embedding of a text from the pooled
values of the last layer."""

from random import Random

import torch
from torch import nn

from ..data.groups import Group
from ..data.layout import encode
from ..data.rows import LIKENESS, Row
from ..model.batches import by_length, collate
from ..model.encoder import SIMILARITY, WIDTH, Model, pool
from .embeddings import LONGEST_TEXT, embedded

TEXTS, RIDGE = 4000, 1e-2
# The initial weight of the similarity term in a logit.
FIRST_SCALE = 4.0


def texts_of(rows: list[Row], count: int = TEXTS) -> list[str]:
    """Returns some of the texts and phrases that the base model compared."""
    found: dict[str, None] = {}
    for row in rows:
        if row.source == LIKENESS and isinstance(row.state, str):
            found |= {row.state: None} | dict.fromkeys(list(row.question.get("criteria") or ())[:2])
    return Random(1).sample(list(found), min(count, len(found)))


@torch.no_grad()
def pooled_values(model: Model, texts: list[str], max_tokens: int = 4096) -> torch.Tensor:
    """Returns the mean of the last layer's values over each text [texts, width]."""
    found = torch.empty(len(texts), WIDTH)
    rows = [encode(Group(LIKENESS, text, []), LONGEST_TEXT) for text in texts]
    place = {id(row): i for i, row in enumerate(rows)}
    for group in by_length(rows, max_tokens):
        batch = collate(group)
        _, values = model.eval().encode(batch)
        found[[place[id(row)] for row in group]] = pool((batch.part > 0)[:, None].float(), values).squeeze(1)
    return found


def widen(model: Model, width: int = SIMILARITY) -> None:
    """Gives the model a similarity term of `width` dimensions, whose weights are loaded later."""
    model.similar_state, model.similar_option = nn.Linear(WIDTH, width), nn.Linear(WIDTH, width)


def fit_similarity(model: Model, texts: list[str], width: int = SIMILARITY) -> None:
    """Gives the model a similarity term of `width` dimensions, fitted by ridge regression on the directions in which
    the base model's embeddings differ most."""
    meanings, values = embedded(texts), pooled_values(model, texts)
    directions = torch.linalg.svd(meanings, full_matrices=False).Vh[:width].T
    inputs = torch.cat([values, torch.ones(len(values), 1)], dim=1)
    solved = torch.linalg.solve(inputs.T @ inputs + RIDGE * torch.eye(WIDTH + 1), inputs.T @ meanings @ directions)
    widen(model, directions.shape[1])
    for layer in (model.similar_state, model.similar_option):
        layer.weight.data, layer.bias.data = solved[:-1].T.contiguous(), solved[-1].clone()
    model.similar_scale.data.fill_(FIRST_SCALE)
