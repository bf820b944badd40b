"""Batches that several processes write beforehand, so that a GPU need not wait for them.

A file holds the batches of one pool of groups. Its name is the number of the pool, so that who reads them in order
reads the same ones, however many processes wrote them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import torch

from ..data.layout import Encoded
from ..model.batches import Batch, Ties, by_length, collate, mixed
from ..recipes.mixture import Mixture
from .crossed import partly_crossed

# Rows are padded to a multiple of this, which the GPU's matrix units ask for.
MULTIPLE = 8
# The files that are read ahead, and the seconds between two looks for one that is not yet written.
AHEAD, PAUSE = 6, 0.05
# The types of tensors in memory, by those in a file.
LARGE = {torch.int16: torch.int64, torch.int32: torch.int64, torch.float16: torch.float32}


@dataclass(frozen=True)
class Sizes:
    """The groups of a pool, the share of them that ask a text what was asked about another, the padded tokens of a
    batch, and the longest group in tokens."""

    pool: int = 1024
    crossed: float = 0.25
    tokens: int = 24576
    longest: int = 4096


def pool_of(mixture: Mixture, index: int, sizes: Sizes) -> list[Encoded]:
    """Returns the groups of a pool."""
    rows = partly_crossed(mixture, index, sizes.pool, sizes.crossed)
    return [row for row in rows if len(row.ids) <= sizes.longest]


def batches_of(mixture: Mixture, index: int, sizes: Sizes) -> list[Batch]:
    """Returns the batches of a pool, in an order that mixes their lengths."""
    rows = mixed(list(by_length(pool_of(mixture, index, sizes), sizes.tokens)), index)
    return [collate(group, MULTIPLE) for group in rows]


def path_of(folder: Path, index: int) -> Path:
    """Returns the path of a pool's file."""
    return folder / f"{index:06}.pt"


def write(folder: Path, index: int, batches: list[Batch]) -> None:
    """Writes a pool's file; a file that can be seen is whole."""
    path = path_of(folder, index)
    part = path.with_suffix(".part")
    torch.save([packed(batch) for batch in batches], part)
    os.replace(part, path)


def read(path: Path, device: str) -> list[Batch]:
    """Returns the batches of a file on a device."""
    return [unpacked(item, device) for item in torch.load(path, weights_only=True)]


def read_all(folder: Path, device: str) -> list[Batch]:
    """Returns the batches of all files of a folder on a device."""
    return [batch for path in sorted(folder.glob("*.pt")) for batch in read(path, device)]


def small(value: torch.Tensor) -> torch.Tensor:
    """Returns a tensor in the smallest type that holds its values."""
    if value.dtype == torch.float32:
        return value.half()
    if value.dtype != torch.int64:
        return value
    fits = not value.numel() or value.max() <= torch.iinfo(torch.int16).max
    return value.to(torch.int16 if fits else torch.int32)


def packed(batch: Batch | Ties) -> dict[str, Any]:
    """Returns the fields of a batch, its tensors in small types."""
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    found = {name: small(value) if isinstance(value, torch.Tensor) else value for name, value in values.items()}
    if isinstance(batch, Batch):
        found["ties"] = packed(batch.ties)
    return found


def unpacked(item: dict[str, Any], device: str) -> Batch:
    """Returns a batch from its packed fields, on a device."""

    def large(fields: dict[str, Any]) -> dict[str, Any]:
        tensors = {name: value.to(device) for name, value in fields.items() if isinstance(value, torch.Tensor)}
        return fields | {name: value.to(LARGE.get(value.dtype, value.dtype)) for name, value in tensors.items()}

    return Batch(**large(item) | {"ties": Ties(**large(item["ties"]))})


def check_folders(*folders: Path | None) -> None:
    """Raises ValueError if one of the folders of batches, of those that are given, does not exist."""
    for folder in folders:
        if folder and not folder.is_dir():
            raise ValueError(f"{folder}: there is no such folder of batches; `prepare` writes it")


def stream(folder: Path, device: str, is_over: Callable[[], bool], first: int = 0) -> Iterator[Batch]:
    """Yields the batches of the pools from number `first` on, in order, and waits for files that are not yet written,
    until the time is over; a thread reads ahead."""
    over, thread = Event(), ThreadPoolExecutor(1)

    def read_when_written(index: int) -> list[Batch] | None:
        path = path_of(folder, index)
        while not path.exists():
            if is_over() or over.wait(PAUSE):
                return None
        return read(path, device)

    ahead = deque(thread.submit(read_when_written, index) for index in range(first, first + AHEAD))
    try:
        for index in count(first + AHEAD):
            batches = ahead.popleft().result()
            if batches is None:
                return
            yield from batches
            ahead.append(thread.submit(read_when_written, index))
    finally:
        over.set()
        thread.shutdown(cancel_futures=True)
