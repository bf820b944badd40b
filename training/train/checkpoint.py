"""Saves and loads everything that a run needs to go on after a kill."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from ..model.encoder import Model, save_model

STATE, WEIGHTS, STEPS = "state.pt", "checkpoint.safetensors", "steps.json"


@dataclass
class Progress:
    """The progress of a run: the finished steps, and the next batch as a pool and an index in it."""

    step: int = 0
    pool: int = 0
    batch: int = 0


class Average:
    """A running average of the weights, which is better than the current weights: it has less noise and is nearer to
    the start."""

    def __init__(self, model: Model, decay: float) -> None:
        self.decay, self.weights = decay, {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: Model, step: int) -> None:
        """Adds the weights after a step; early steps have more weight, so that the initial weights are forgotten."""
        keep = min(self.decay, (1 + step) / (10 + step))
        for name, value in model.named_parameters():
            if value.requires_grad:
                self.weights[name].lerp_(value, 1 - keep)


def save(folder: Path, model: Model, average: Average, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Writes the checkpoint and the averaged weights; a kill while writing leaves the last checkpoint whole."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{STATE}.part"
    torch.save(
        {
            "model": model.state_dict(),
            "average": average.weights,
            "optimizer": optimizer.state_dict(),
            "progress": vars(progress),
        },
        part,
    )
    os.replace(part, folder / STATE)
    averaged = Model(model.similar_state.out_features)
    averaged.load_state_dict(average.weights)
    save_model(averaged, folder / f"{WEIGHTS}.part")
    os.replace(folder / f"{WEIGHTS}.part", folder / WEIGHTS)


def resume(folder: Path, model: Model, average: Average, optimizer: torch.optim.Optimizer) -> Progress:
    """Loads the folder's checkpoint into the arguments and returns its progress; a new progress if there is no
    checkpoint."""
    path = folder / STATE
    if not path.exists():
        return Progress()
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    average.weights = {name: value.to(model.word.weight.device) for name, value in saved["average"].items()}
    return Progress(**saved["progress"])


def planned_steps(folder: Path, steps: int) -> int:
    """Returns the planned number of steps: that of `steps.json` if it exists, so that a run can be made shorter or
    longer while it runs."""
    path = folder / STEPS
    return int(json.loads(path.read_text())) if path.exists() else steps
