"""Saves and loads everything that a run needs to go on after a kill."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..model.encoder import Model
from ..model.weights import save_model

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
        self.decay = decay
        self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: Model, step: int) -> None:
        """Adds the weights after a step; early steps have more weight, so that the initial weights are forgotten."""
        keep = min(self.decay, (1 + step) / (10 + step))
        for name, value in model.named_parameters():
            if value.requires_grad:
                self.weights[name].lerp_(value, 1 - keep)


@dataclass
class Run:
    """The parts of a run that a checkpoint holds."""

    model: Model
    average: Average
    optimizer: torch.optim.Optimizer
    progress: Progress = field(default_factory=Progress)


def save(folder: Path, run: Run) -> None:
    """Writes the checkpoint and the averaged weights; a kill while writing leaves the last checkpoint whole."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{STATE}.part"
    # The checkpoint holds tensors and plain values only, so that it does not depend on where classes are defined.
    state = {
        "model": run.model.state_dict(),
        "average": run.average.weights,
        "optimizer": run.optimizer.state_dict(),
        "progress": vars(run.progress),
    }
    torch.save(state, part)
    os.replace(part, folder / STATE)
    averaged = Model(run.model.similar_state.out_features)
    averaged.load_state_dict(run.average.weights)
    save_model(averaged, folder / f"{WEIGHTS}.part")
    os.replace(folder / f"{WEIGHTS}.part", folder / WEIGHTS)


def resume(folder: Path, run: Run) -> None:
    """Loads the folder's checkpoint into the run; changes nothing if there is no checkpoint."""
    path = folder / STATE
    if not path.exists():
        return
    saved = torch.load(path, map_location="cpu", weights_only=True)
    # A run that an earlier version began lacks the weights that came later.
    run.model.load_state_dict(run.model.state_dict() | saved["model"])
    run.optimizer.load_state_dict(saved["optimizer"])
    device = run.model.word.weight.device
    run.average.weights |= {name: value.to(device) for name, value in saved["average"].items()}
    run.progress = Progress(**saved["progress"])


def planned_steps(folder: Path, steps: int) -> int:
    """Returns the planned number of steps: that of `steps.json` if it exists, so that a run can be made shorter or
    longer while it runs."""
    path = folder / STEPS
    return int(json.loads(path.read_text())) if path.exists() else steps
