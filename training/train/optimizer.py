"""The optimizer, and the rate of each weight at each step."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from ..model.encoder import LAYERS, Model

# The rate of the single number for each head, which the rates of weights would hardly change.
SHARPNESS_RATE = 2e-3
# The smallest share of the peak rate.
SMALLEST_SHARE = 1e-3
# The longest gradient.
LONGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class Rates:
    """The peak rates of the last layer and of the heads; each layer's rate is the share `layer_decay` of the one above.
    The `frozen` lowest layers stay as they are, with the embeddings."""

    last_layer: float
    head: float
    layer_decay: float
    frozen: int = 0


def make_optimizer(model: Model, rates: Rates) -> torch.optim.Optimizer:
    """Returns AdamW with a rate per layer. Word embeddings stay as they are, because most words of a request never
    occur in training, and what `calibrate` fits stays, too."""
    model.word.weight.requires_grad_(False)
    for fitted in (model.act, model.none):
        fitted.requires_grad_(False)
    if rates.frozen:
        for part in (model.position, model.kind, model.norm, *model.layers[: rates.frozen]):
            part.requires_grad_(False)
    return adamw((rate_of(name, rates), value) for name, value in model.named_parameters())


def adamw(rated: Iterable[tuple[float, torch.nn.Parameter]]) -> torch.optim.Optimizer:
    """Returns AdamW for weights with their peak rates; those that need no gradient are left out."""
    by_rate: dict[float, list[torch.nn.Parameter]] = defaultdict(list)
    for rate, value in rated:
        if value.requires_grad:
            by_rate[rate].append(value)
    groups = [{"params": values, "lr": rate, "peak": rate} for rate, values in sorted(by_rate.items())]
    return torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98), fused=True)


def update(optimizer: torch.optim.Optimizer, loss: torch.Tensor, rate: float) -> None:
    """Makes one update of the weights, at this share of the peak rates."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    trained = [value for group in optimizer.param_groups for value in group["params"]]
    torch.nn.utils.clip_grad_norm_(trained, LONGEST_GRADIENT)
    optimizer.step()


def rate_of(name: str, rates: Rates) -> float:
    """Returns a parameter's peak rate, by its depth."""
    if name.endswith(("sharpness", "similar_scale")):
        return SHARPNESS_RATE
    if name.startswith("layers."):
        return rates.last_layer * rates.layer_decay ** (LAYERS - 1 - int(name.split(".")[1]))
    if name.startswith(("position", "kind", "norm")):
        return rates.last_layer * rates.layer_decay**LAYERS
    return rates.head


def share_of_rate(step: int, steps: int, warm_up: int, decay: int) -> float:
    """Returns the share of the peak rate at a step: it rises in a straight line, stays constant, and falls to almost
    zero at the end, which may be changed during the run."""
    left = (steps - step) / max(1, min(decay, steps // 2))
    return max(min((step + 1) / max(1, min(warm_up, steps // 4)), left, 1.0), SMALLEST_SHARE)


def share_at(done: float, warm_up: float, decay: float, last: float = 0.0) -> float:
    """Returns the share of the peak rate when a share of the time is over: it rises in a straight line, stays, and
    falls to the share `last`."""
    falling = last + (1 - last) * (1 - done) / decay
    return max(min(done / warm_up, falling, 1.0), SMALLEST_SHARE)
