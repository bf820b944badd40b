"""Reads files of which a part or another kind may be there: a ValueError says in one line which file it is."""

import errno
import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file


def object_in(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: no JSON object")
    return found


def tensors_in(path: Path) -> dict[str, torch.Tensor]:
    """Returns the tensors of a safetensors file."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path}: no safetensors file: {error}") from error


def saved_in(path: Path, mmap: bool = False) -> dict[str, Any]:
    """Returns the dictionary that `torch.save` wrote, of tensors and plain values only."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
        # PyTorch calls a file that was cut off an invalid argument; other errors of the system say what they are.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{path}: no whole file of torch.save") from error
