"""The act head, which tells whether the top answer is right."""

import torch
from torch.nn import functional as F

from ..model.batches import Batch
from ..model.encoder import ACT_FEATURES, Model, row_of

WIDEST_MARGIN = 20.0
FIT_STEPS = 300


def spread(logits: torch.Tensor) -> torch.Tensor:
    """Returns the act head's features of the logits [questions, options]: margin, log of the top probability, entropy,
    log of the number of options."""
    padded = F.pad(logits, (0, 2), value=-1e4)
    log_p = F.log_softmax(padded, dim=-1)
    top = padded.topk(2).values
    entropy = -(log_p.exp() * log_p).sum(-1)
    many = (logits > -1e4).sum(-1).clamp(min=1).float().log()
    return torch.stack([(top[:, 0] - top[:, 1]).clamp(max=WIDEST_MARGIN), log_p.max(-1).values, entropy, many], dim=-1)


def act_features(model: Model, batch: Batch) -> torch.Tensor:
    """Returns the logits and the act head's input, concatenated [questions, options + width + features]."""
    x, values = model.encode(batch)
    logits = model.scores(x, values, batch).logits
    row = row_of(batch).squeeze(1)
    parts = batch.part.flatten()[batch.markers[:, 0]]
    firsts = [(batch.part[r] == part).nonzero()[0, 0] for r, part in zip(row, parts)]
    heads = torch.stack([x[r, first] for r, first in zip(row, firsts)])
    return torch.cat([heads, spread(logits), logits], dim=-1)


def fit_act(model: Model, features: torch.Tensor, right: torch.Tensor, weights: torch.Tensor) -> None:
    """Fits the act head by logistic regression: "act" means "the top answer is right". It has a weight decay, because
    there are few rows and many inputs."""
    scale = features.std(0).clamp(min=1e-3)
    middle = features.mean(0)
    inputs = (features - middle) / scale
    layer = torch.nn.Linear(features.shape[1], 1)
    torch.nn.init.zeros_(layer.weight)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.02, weight_decay=0.0)
    # The state and the question tell little that generalises, so they have a larger decay; the spread of the logits
    # tells most.
    decay = torch.full((features.shape[1],), 0.02)
    decay[-ACT_FEATURES:] = 1e-4
    for _ in range(FIT_STEPS):
        loss = F.binary_cross_entropy_with_logits(layer(inputs).squeeze(1), right, weight=weights)
        loss = loss + (decay * layer.weight.square()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        weight = layer.weight[0] / scale
        bias = layer.bias[0] - (weight * middle).sum()
        # The head has two logits, whose difference is the regression's output.
        model.act.weight.copy_(torch.stack([weight, -weight]) / 2)
        model.act.bias.copy_(torch.stack([bias, -bias]) / 2)
