"""The loss of a batch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from ..model.batches import Batch
from ..model.encoder import Model

# Tied probabilities that differ by less than this are drawn together by the square of their difference, others by the
# difference itself: a square alone hardly moves probabilities that differ by little.
NEAR = 0.05
# The scale of the cosines by which the similarity term learns, as for those of the base model.
SHARP = 14.0
# The weight of the differences of whole distributions in the loss, and the smallest probability in them.
WHOLE, SMALLEST = 0.2, 1e-4


@dataclass(frozen=True)
class Learned:
    """The answers to a batch, those of the similarity term alone, and the loss."""

    logits: torch.Tensor
    cosines: torch.Tensor
    loss: torch.Tensor


@dataclass(frozen=True)
class Kept:
    """An earlier model, and the share of its answers in what is learned.

    If there are `corrected` sources, these are learned from their labels alone, and the answers to all others are kept,
    whatever `Batch.kept` says.
    """

    model: Callable[[Batch], torch.Tensor]
    share: float
    corrected: frozenset[str] = frozenset()


def learned(model: Model, batch: Batch, consistency: float, eye: float, bf16: bool) -> Learned:
    """Returns the answers to a batch and their loss, with the weights of what ties answers together and of the
    similarity term alone."""
    with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=bf16):
        logits, cosines, _ = model.scores(*model.encode(batch), batch)
    loss = loss_of(logits, batch, consistency)
    if eye:
        loss = loss + eye * eye_loss(cosines, batch)
    return Learned(logits, cosines, loss)


@torch.no_grad()
def keeping(kept: Kept, batch: Batch, bf16: bool) -> Batch:
    """Returns a batch with a share of an earlier model's answers in what is to be learned, and with nothing else where
    there is no label, where they may be kept."""
    with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=bf16):
        answers = kept.model(batch).float().softmax(-1)
    shares, may_be = torch.where(batch.is_labelled(), kept.share, 1.0), batch.kept
    if kept.corrected:
        may_be = torch.tensor([source not in kept.corrected for source in batch.sources], device=shares.device)
    return batch.with_answers(answers, shares * may_be)


def apart_everywhere(logits: torch.Tensor, target: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Returns the mean square difference of the logits and the target's logarithms, both without their means, over each
    question's options: it also distinguishes wrong options from very wrong ones."""
    gap = (logits - target.clamp(min=SMALLEST).log()).masked_fill(~real, 0.0)
    count = real.sum(-1, keepdim=True)
    return ((gap - gap.sum(-1, keepdim=True) / count).square() * real).sum(-1) / count.squeeze(-1)


def loss_of(logits: torch.Tensor, batch: Batch, consistency: float) -> torch.Tensor:
    """Returns the loss: cross-entropy, the differences of tied probabilities, and the square differences of the
    logarithms of whole distributions."""
    log_p = F.log_softmax(logits, dim=-1)
    loss = -(batch.target * log_p).sum(-1).mean()
    if batch.whole.any():
        whole = batch.whole
        apart = apart_everywhere(logits[whole], batch.target[whole], batch.real[whole])
        loss = loss + WHOLE * apart.sum() / len(batch.target)
    if len(batch.ties.at_most):
        terms = batch.ties.signs * log_p.exp().flatten()[batch.ties.terms[:, 1]]
        apart = torch.zeros(len(batch.ties.at_most), device=terms.device).index_add(0, batch.ties.terms[:, 0], terms)
        apart = torch.where(batch.ties.at_most, apart.clamp(min=0), apart)
        apart = F.smooth_l1_loss(apart, torch.zeros_like(apart), beta=NEAR, reduction="sum")
        loss = loss + consistency * apart / len(batch.target)
    return loss


def eye_loss(cosines: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Returns the loss of only the similarity term on which options are similar to the state, so that the term keeps
    the knowledge of sentence encoders whatever the rest of the model learns."""
    asked = batch.meant.any(-1)
    meant = batch.meant[asked]
    if not len(meant):
        return cosines.sum() * 0
    target = batch.target[asked].masked_fill(~meant, 0.0)
    target = target / target.sum(-1, keepdim=True).clamp(min=SMALLEST)
    logits = (SHARP * cosines[asked].float()).masked_fill(~meant, -1e4)
    apart = apart_everywhere(logits, target, meant)
    return (-(target * F.log_softmax(logits, dim=-1)).sum(-1) + WHOLE * apart).sum() / len(batch.target)
