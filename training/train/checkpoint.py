"""Saves and loads everything that a run needs to go on after a kill."""

import errno
import json
import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from ..model.encoder import Model
from ..model.weights import save_model

STATE, WEIGHTS, STEPS = "state.pt", "checkpoint.safetensors", "steps.json"

# An option of a run, as it is saved.
Option = bool | int | float | str | None


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
    """The parts of a run that a checkpoint holds. `options` are those that it goes on with, by their names."""

    model: Model
    average: Average
    optimizer: torch.optim.Optimizer
    progress: Progress = field(default_factory=Progress)
    options: Mapping[str, Option] = field(default_factory=dict)


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
        "options": dict(run.options),
    }
    torch.save(state, part)
    os.replace(part, folder / STATE)
    averaged = Model(run.model.similar_state.out_features)
    averaged.load_state_dict(run.average.weights)
    save_model(averaged, folder / f"{WEIGHTS}.part")
    os.replace(folder / f"{WEIGHTS}.part", folder / WEIGHTS)


def saved_in(path: Path, mmap: bool = False) -> dict[str, Any]:
    """Returns what `save` wrote; raises ValueError, which names the file, if it is not whole."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
        # PyTorch calls a file that was cut off an invalid argument; other errors of the system say what they are.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{path}: no whole file of torch.save") from error


def refuse_other_options(folder: Path, options: Mapping[str, Option]) -> None:
    """Ends the process if the folder's checkpoint is of a run with other options. Nothing is known of those that it was
    saved without, by an earlier version."""
    path = folder / STATE
    if not path.exists():
        return
    began = saved_in(path, mmap=True).get("options", {})
    others = [name for name in began if name in options and began[name] != options[name]]
    if others:
        told = ", ".join(f"{name} was {worded(began[name])} and is {worded(options[name])}" for name in others)
        raise SystemExit(f"{folder}: the run there goes on only with the options that it began with: {told}")


def worded(option: Option) -> str:
    """Returns the value of an option in words."""
    if isinstance(option, bool):
        return "on" if option else "off"
    return "not given" if option is None else str(option)


def resume(folder: Path, run: Run) -> None:
    """Loads the folder's checkpoint into the run; changes nothing if there is no checkpoint."""
    path = folder / STATE
    if not path.exists():
        return
    saved = saved_in(path)
    # A run that an earlier version began lacks the weights that came later.
    run.model.load_state_dict(run.model.state_dict() | saved["model"])
    try:
        run.optimizer.load_state_dict(saved["optimizer"])
    except ValueError as error:
        raise SystemExit(f"{folder}: the run there began with another --frozen, or with other rates") from error
    device = run.model.word.weight.device
    run.average.weights |= {name: value.to(device) for name, value in saved["average"].items()}
    run.progress = Progress(**saved["progress"])


class Plan:
    """The planned number of steps: that of `steps.json` if it exists, so that a run can be made shorter or longer while
    it runs. What is no number there, such as half of a file, changes nothing."""

    def __init__(self, folder: Path, steps: int) -> None:
        self.path, self.given, self.known, self.ignored = folder / STEPS, steps, steps, False

    def steps(self) -> int:
        """Returns the number that is planned now; says so once if the file holds none."""
        try:
            self.known, self.ignored = number_in(self.path.read_text(encoding="utf-8")), False
        except FileNotFoundError:
            self.known, self.ignored = self.given, False
        except (ValueError, OverflowError):
            if not self.ignored:
                tqdm.write(f"{self.path}: no number, so {self.known} steps stay planned", file=sys.stderr)
            self.ignored = True
        return self.known


def number_in(text: str) -> int:
    """Returns the whole part of the number in a text; raises ValueError or OverflowError if there is none."""
    number = json.loads(text)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError("no number")
    return int(number)
