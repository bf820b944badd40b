"""Runs that end at a time, not after a number of steps: a GPU is often lent by the minute."""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..model.batches import Batch

# The steps after which a line of the log is written.
LOGGED_STEPS = 100


def prepare_device() -> None:
    """Sets what suits a GPU and rows of many lengths."""
    # TF32 has as many bits as the places of an input in int8 ask for.
    torch.backends.cuda.matmul.allow_tf32 = True
    # cuDNN plans anew for each shape, which takes longer than many steps.
    torch.backends.cuda.enable_cudnn_sdp(False)


@dataclass
class Clock:
    """The time that a run has, in seconds from now on. Its share counts from the first look on, so that a run which has
    waited for its first batch begins as every other does."""

    seconds: float
    made: float = field(default_factory=time.monotonic)
    began: float | None = None

    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() - self.made >= self.seconds

    def done(self) -> float:
        """Returns the share of the time that is over, 0 at the first call, and 1 or more when all of it is."""
        self.began = self.began or time.monotonic()
        left = self.made + self.seconds - self.began
        return (time.monotonic() - self.began) / left if left > 0 else 1.0


@dataclass
class Log:
    """The losses and the accuracies by source since the last line. Nothing is read from the GPU until a line is
    written, so that it need not wait."""

    path: Path
    step: int = 0
    tokens: int = 0
    began: float = field(default_factory=time.monotonic)
    losses: list[torch.Tensor] = field(default_factory=list)
    answers: list[tuple[list[str], torch.Tensor]] = field(default_factory=list)

    def add(self, batch: Batch, logits: torch.Tensor, loss: torch.Tensor, done: float) -> None:
        """Counts a step; now and then writes a line."""
        self.step += 1
        self.tokens += batch.ids.numel()
        self.losses.append(loss.detach())
        self.answers.append((batch.sources, rights(batch, logits.detach())))
        if self.step % LOGGED_STEPS == 0:
            self.write(done)

    def write(self, done: float) -> None:
        """Writes a line and starts again."""
        line = {
            "step": self.step,
            "done": round(done, 3),
            "loss": round(torch.stack(self.losses).mean().item(), 4),
            "padded_tokens_per_second": round(self.tokens / (time.monotonic() - self.began)),
        }
        accuracy = accuracies(self.answers)
        print(
            json.dumps(line | {"mean_accuracy": round(sum(accuracy.values()) / max(len(accuracy), 1), 4)}), flush=True
        )
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line | {"accuracy": accuracy}) + "\n")
        self.tokens, self.began, self.losses, self.answers = 0, time.monotonic(), [], []


def warn_without_steps(log: Log, batches: Path, first: int) -> None:
    """Says on stderr if a run has read no batch in its time, so that its weights are those that it began with."""
    if not log.step:
        print(f"{batches}: no batch from pool {first} on was there in time; nothing was learned", file=sys.stderr)


def rights(batch: Batch, logits: torch.Tensor) -> torch.Tensor:
    """Returns for each question 1 if the likeliest option is right, 0 if not, and -1 if nobody knows [questions]."""
    right = (logits.argmax(-1) == batch.target.argmax(-1)).to(torch.int8)
    return torch.where(batch.target.sum(-1) > 0, right, -1)


def accuracies(answers: Iterable[tuple[list[str], torch.Tensor]]) -> dict[str, float]:
    """Returns the share of right answers by source, of what is known."""
    found: dict[str, list[int]] = defaultdict(list)
    for sources, known in answers:
        for source, right in zip(sources, known.tolist()):
            if right >= 0:
                found[source].append(right)
    return {source: round(sum(right) / len(right), 3) for source, right in sorted(found.items())}


@torch.no_grad()
def checked(score: Callable[[Batch], torch.Tensor], batches: Iterable[Batch]) -> dict[str, float]:
    """Returns the share of right answers by source in batches that were held out, and their mean."""
    found = accuracies([(batch.sources, rights(batch, score(batch))) for batch in batches])
    return found | {"mean": round(sum(found.values()) / max(len(found), 1), 4)}
