"""The log of a run: loss, speed and accuracy by source."""

import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..model.batches import Batch


@dataclass
class Window:
    """The steps since the last line: their losses and tokens, the right answers by source, and how often the similarity
    term alone chose as its teachers do."""

    began: float = field(default_factory=time.monotonic)
    tokens: int = 0
    losses: list[float] = field(default_factory=list)
    right: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    alike: list[bool] = field(default_factory=list)


class Log:
    """The losses and the accuracies by source since the last line of `log.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path, self.window = path, Window()

    def add(self, batch: Batch, logits: torch.Tensor, cosines: torch.Tensor, loss: float) -> None:
        """Counts a step."""
        asked = batch.meant.any(-1)
        best = cosines[asked].masked_fill(~batch.meant[asked], -2).argmax(-1)
        meant = batch.target[asked].masked_fill(~batch.meant[asked], -1).argmax(-1)
        self.window.alike += (best == meant).tolist()
        self.window.tokens += batch.token_count()
        self.window.losses.append(loss)
        right = (logits.argmax(-1) == batch.target.argmax(-1)).tolist()
        for source, is_right, is_labelled in zip(batch.sources, right, batch.is_labelled().tolist()):
            if is_labelled:
                self.window.right[source].append(is_right)

    def write(self, step: int, rate: float, scale: float) -> str:
        """Writes a line, starts again, and returns a short form of the line. Its `alike` is how often the similarity
        term alone chooses as its teachers do; `scale` is the term's weight in a logit."""
        window, self.window = self.window, Window()
        speed = round(window.tokens / (time.monotonic() - window.began))
        loss = sum(window.losses) / len(window.losses)
        line = {
            "step": step,
            "loss": round(loss, 4),
            "tokens_per_second": speed,
            "rate": round(rate, 4),
            "scale": round(scale, 3),
            "alike": round(sum(window.alike) / max(len(window.alike), 1), 3),
            "accuracy": {source: round(sum(right) / len(right), 3) for source, right in sorted(window.right.items())},
        }
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        return f"loss {loss:.3f}, {speed} tokens/s"
