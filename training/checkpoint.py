"""What a run needs to go on after a kill."""
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from .model import Model, save_model

STATE, WEIGHTS, STEPS = "state.pt", "checkpoint.safetensors", "steps.json"


@dataclass
class Progress:
    """Where a run stands: steps done, and the next batch as a pool and a place in it."""

    step: int = 0
    pool: int = 0
    batch: int = 0


class Average:
    """A running average of the weights, which is better than where they stand: lower in noise and nearer to where they began."""

    def __init__(self, model: Model, decay: float) -> None:
        self.decay, self.weights = decay, {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: Model, step: int) -> None:
        """Takes the weights after a step in; early steps weigh more, so that the start is forgotten."""
        keep = min(self.decay, (1 + step) / (10 + step))
        for name, value in model.named_parameters():
            if value.requires_grad:
                self.weights[name].lerp_(value, 1 - keep)


def save(folder: Path, model: Model, average: Average, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Writes everything; a kill while writing leaves the last checkpoint whole."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{STATE}.part"
    torch.save({"model": model.state_dict(), "average": average.weights, "optimizer": optimizer.state_dict(), "progress": vars(progress)}, part)
    os.replace(part, folder / STATE)
    averaged = Model(model.similar_state.out_features)
    averaged.load_state_dict(average.weights)
    save_model(averaged, folder / f"{WEIGHTS}.part")
    os.replace(folder / f"{WEIGHTS}.part", folder / WEIGHTS)


def resume(folder: Path, model: Model, average: Average, optimizer: torch.optim.Optimizer) -> Progress:
    """The progress of the folder's checkpoint, loaded into the arguments; a fresh one where there is none."""
    path = folder / STATE
    if not path.exists():
        return Progress()
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    average.weights = {name: value.to(model.word.weight.device) for name, value in saved["average"].items()}
    return Progress(**saved["progress"])


def planned_steps(folder: Path, steps: int) -> int:
    """How many steps the run shall have: what `steps.json` says, so that a run can be told to end sooner or later while it runs."""
    path = folder / STEPS
    return int(json.loads(path.read_text())) if path.exists() else steps
