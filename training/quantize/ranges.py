"""The input ranges of the int8 products."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import torch

from ..data.files import object_in
from ..data.layout import Encoded, encode, unlabelled
from ..data.rows import Row
from ..model.batches import Batch, by_length, collate
from ..model.encoder import Model
from ..model.int8_matmul import Ends, Int8Linear, Ranges

SAMPLE = 100_000
# The longest state in tokens by which ranges are measured.
STATE_MAX = 512
# The percentage of a product's inputs that its range spans, by default.
PERCENTILE = 99.99
# The name of the file that `train --int8` writes next to the checkpoint.
RANGES = "ranges.json"


def products(model: Model) -> dict[str, Int8Linear]:
    """Returns the linear layers that are quantized, by their names in the graph."""
    found: dict[str, Int8Linear] = {}
    for i, layer in enumerate(model.layers):
        parts = {"qkv": layer.qkv, "out": layer.out, "up": layer.up, "down": layer.down}
        found |= {f"layers.{i}.{name}": part for name, part in parts.items()}
    return found


def sample(rows: list[Row], count: int) -> list[Encoded]:
    """Returns some rows, encoded, with the same number from every source."""
    by_source: dict[str, list[Row]] = {}
    for row in rows:
        by_source.setdefault(row.source, []).append(row)
    rng, each = Random(3), max(1, count // len(by_source))
    chosen = [row for own in by_source.values() for row in rng.sample(own, min(each, len(own)))]
    return [encode(unlabelled(row.source, row.state, row.question), STATE_MAX) for row in chosen]


def inputs_of(model: Model, rows: list[Encoded], max_tokens: int = 4096) -> dict[str, list[torch.Tensor]]:
    """Returns the inputs of each product [tokens, width], without padding, as a list of batches."""
    return inputs_in(model, (collate(group) for group in by_length(rows, max_tokens)))


@torch.no_grad()
def inputs_in(model: Model, batches: Iterable[Batch]) -> dict[str, list[torch.Tensor]]:
    """Returns the inputs of each product [tokens, width], without padding, for each of the batches."""
    seen: dict[str, list[torch.Tensor]] = defaultdict(list)
    current: list[Batch] = []

    def record(name: str, inputs: torch.Tensor) -> None:
        seen[name].append(inputs[current[-1].part != 0])

    hooks = [
        layer.register_forward_hook(lambda _, args, __, name=name: record(name, args[0]))
        for name, layer in products(model).items()
    ]
    try:
        for batch in batches:
            current.append(batch)
            model.eval()(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def ranges_of(inputs: dict[str, list[torch.Tensor]], percentile: float) -> Ranges:
    """Returns the widest batch's range between two percentiles for each product. 100 is the full range; less cuts off
    rare outliers for finer steps."""
    generator = torch.Generator().manual_seed(0)

    def ends(batch: torch.Tensor) -> Ends:
        flat = batch.flatten()
        if percentile >= 100:
            return flat.min().item(), flat.max().item()
        if len(flat) > SAMPLE:
            flat = flat[torch.randint(len(flat), (SAMPLE,), generator=generator)]
        tail = (100 - percentile) / 100
        return torch.quantile(flat, tail).item(), torch.quantile(flat, 1 - tail).item()

    return {name: widest([ends(batch) for batch in batches]) for name, batches in inputs.items()}


def widest(ranges: Sequence[Ends]) -> Ends:
    """Returns the range from the lowest to the highest end."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def simulate(model: Model, ranges: Ranges) -> None:
    """Makes the model compute as int8 with these ranges will."""
    for name, product in products(model).items():
        product.ends = ranges[name]


def write_ranges(path: Path, ranges: Ranges) -> None:
    """Writes the ranges as JSON."""
    path.write_text(json.dumps(ranges, indent=1) + "\n", encoding="utf-8")


def read_ranges(path: Path) -> Ranges:
    """Returns the ranges from a file of `write_ranges`."""
    return {name: (low, high) for name, (low, high) in object_in(path).items()}
