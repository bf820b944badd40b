"""The none head, which tells how much an option means "none of these", and how such an option's logit follows from the
number of options."""

from collections.abc import Sequence

import torch
from torch.nn import functional as F

from ..data.question import ServedQuestion, option_count
from ..data.rows import Row
from ..data.wording import NONE_NAMES, is_none
from ..model.batches import Batch
from ..model.encoder import Model, NoneHead
from .fitting import FEWEST_ROWS, FEWEST_SOURCES, weights_of

# An option that means "none of these" counts as much as so many others, since there are as many more of those.
RARE = 5.0
DECAY, STEPS = 10.0, 200
# The fit tries by how much a logit grows with the logarithm of the number of options, and what is taken away from it.
GROWTHS, OFFSETS = [step / 20 for step in range(31)], [step / 10 for step in range(-20, 41)]


def none_features(model: Model, batch: Batch) -> torch.Tensor:
    """Returns each option's logit and what the none head reads of it, concatenated [questions, options, 1 + width]."""
    logits, _, options = model.scores(*model.encode(batch), batch)
    return torch.cat([logits[..., None], options], dim=-1)


def means_none(question: ServedQuestion) -> torch.Tensor:
    """Returns which options of a question mean "none of these" [options]: 1 if they do, else 0."""
    if question["type"] != "choice":
        return torch.zeros(option_count(question))
    criteria = question["criteria"]
    described = criteria if isinstance(criteria, dict) else dict.fromkeys(criteria, "")
    return torch.tensor([float(is_none(name, text or "") or name in NONE_NAMES) for name, text in described.items()])


def fit_none(
    head: NoneHead,
    rows: Sequence[Row],
    found: Sequence[torch.Tensor],
    labels: Sequence[int],
    earlier: NoneHead | None = None,
) -> None:
    """Fits the head and the growth on rows with the results of `none_features`, unless too few of them offer "none of
    these". The growth is that of an earlier head, if there is one; raises ValueError if it cannot be kept, because the
    rows are too few."""
    meant = [means_none(row.question) for row in rows]
    offered = [i for i, own in enumerate(meant) if own.any()]
    if len(offered) < FEWEST_ROWS or len({rows[i].source for i in offered}) < FEWEST_SOURCES:
        if earlier is not None:
            raise ValueError('too few held-out rows offer "none of these" to fit anew what the none head reads')
        return
    fit_meaning(head, torch.cat([own[:, 1:] for own in found]), torch.cat(meant))
    if earlier is not None:
        head.growth.data, head.offset.data = earlier.growth.data.clone(), earlier.offset.data.clone()
        return
    chosen = [rows[i] for i in offered]
    weights = torch.tensor(weights_of(chosen), dtype=torch.float32)
    with torch.no_grad():
        shares = [head.share(found[i][:, 1:]) for i in offered]
    fit_growth(head, [found[i][:, 0] for i in offered], shares, torch.tensor([labels[i] for i in offered]), weights)


def fit_meaning(head: NoneHead, options: torch.Tensor, meant: torch.Tensor) -> None:
    """Fits the head by logistic regression on pooled options [options, width]."""
    middle, scale = options.mean(0), options.std(0).clamp(min=1e-3)
    inputs = (options - middle) / scale
    weight, bias = torch.zeros(options.shape[1], requires_grad=True), torch.zeros(1, requires_grad=True)
    counts = torch.where(meant > 0, RARE, 1.0)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss_of_step() -> torch.Tensor:
        optimizer.zero_grad()
        apart = F.binary_cross_entropy_with_logits(inputs @ weight + bias, meant, counts, reduction="sum")
        loss = (apart + DECAY / 2 * weight.square().sum()) / len(meant)
        loss.backward()
        return loss

    optimizer.step(loss_of_step)
    with torch.no_grad():
        head.weight.copy_((weight / scale)[None])
        head.bias.copy_(bias - (weight / scale * middle).sum())


def fit_growth(
    head: NoneHead, logits: list[torch.Tensor], shares: list[torch.Tensor], labels: torch.Tensor, weights: torch.Tensor
) -> None:
    """Fits by how much the logits of "none of these" grow with the logarithm of the number of options."""
    padded = torch.nn.utils.rnn.pad_sequence(logits, batch_first=True, padding_value=-1e4)
    share = torch.nn.utils.rnn.pad_sequence(shares, batch_first=True)
    many = torch.tensor([float(len(own)) for own in logits]).log()[:, None]
    tried = [(growth, offset) for growth in GROWTHS for offset in OFFSETS]

    def loss(growth: float, offset: float) -> float:
        moved = padded + share * (growth * many - offset)
        return float((F.cross_entropy(moved, labels, reduction="none") * weights).mean())

    growth, offset = min(tried, key=lambda pair: loss(*pair))
    with torch.no_grad():
        head.growth.fill_(growth)
        head.offset.fill_(offset)
