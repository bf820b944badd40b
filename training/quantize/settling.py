"""Finds scales of the int8 inputs with which floats that differ in their last bits round alike."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

import numpy as np
import onnx

from ..folder.reader import Request, Tensors
from .processors import Processor, Recorder
from .segments import Quantized, Segment, needed_later, quantized, segment, store, stored

# A scale is changed in steps of this fraction of itself, and by less than 1 %.
STEP = 2**-17
MOST_STEPS = 1280
# The room of a settled scale: it stays settled if the processors' floats were further apart on either side by this
# fraction of their distance. The values are tried in this order.
ROOMS = (1.0, 0.5, 0.25, 0.0)
BLOCK = 1 << 16


@dataclass
class Results:
    """A processor and its results: for each run the floats that later products need, and the keys and values."""

    processor: Processor
    floats: list[Tensors] = field(default_factory=list)
    past: list[Tensors] = field(default_factory=list)


def grid(model: onnx.ModelProto, product: Quantized) -> tuple[np.float32, np.uint8]:
    """Returns the scale and the zero point of a product's input."""
    return np.float32(stored(model, product.step).item()), np.uint8(stored(model, product.zero).item())


def place(x: np.ndarray, step: np.float32, zero: np.uint8) -> np.ndarray:
    """Returns the integers that `QuantizeLinear` gives for floats on every processor: division and rounding to even are
    exact on all of them."""
    return np.clip(np.rint(x / step) + np.float32(zero), 0, 255).astype(np.uint8)


def alike(below: np.ndarray, above: np.ndarray, step: np.float32, zero: np.uint8) -> bool:
    """Whether all floats between the two bounds round to the same integer."""
    blocks = range(0, len(below), BLOCK)
    ends = ((below[at : at + BLOCK], above[at : at + BLOCK]) for at in blocks)
    return all(np.array_equal(place(low, step, zero), place(high, step, zero)) for low, high in ends)


def candidates(step: np.float32) -> Iterator[np.float32]:
    """Yields the scale and then others, the nearest first."""
    yield step
    for count in range(1, MOST_STEPS + 1):
        yield np.float32(step * (1 + count * STEP))
        yield np.float32(step * (1 - count * STEP))


def settled_step(floats: list[np.ndarray], step: np.float32, zero: np.uint8) -> tuple[np.float32, float]:
    """Returns the nearest scale with which all processors' floats round alike, and its room."""
    low, high = np.minimum.reduce(floats), np.maximum.reduce(floats)
    # The floats that are furthest apart come first, because most scales fail there. Floats that are the same everywhere
    # cannot fail, so they are left out.
    order = np.argsort(low - high)[: np.count_nonzero(high > low)]
    low, high = low[order], high[order]
    for room in ROOMS:
        spread = (high - low) * np.float32(room)
        below, above = low - spread, high + spread
        for candidate in candidates(step):
            if alike(below, above, candidate, zero):
                return candidate, room
    raise SystemExit("settle: no scale within 1 % rounds alike on all processors")


class Settling:
    """Goes through the products in the order of the graph. All products before the current one are settled, so that
    processors differ only by roundings of floats."""

    def __init__(
        self, model: onnx.ModelProto, recorded: Recorder, processors: list[Processor], at_once: int = 2
    ) -> None:
        self.model, self.inputs, self.read, self.at_once = model, recorded.inputs, recorded.read, at_once
        self.past = {"past" + name.removeprefix("present"): name for name in recorded.present}
        self.empty = dict(zip(recorded.past, recorded.empty()))
        self.integers: list[Tensors] = [{} for _ in self.inputs]
        self.results = [
            Results(processor, [{} for _ in self.inputs], [{} for _ in self.inputs]) for processor in processors
        ]
        self.later = needed_later(model)

    def products(self) -> Iterator[tuple[Quantized, list[np.ndarray]]]:
        """Yields each product and its input on every processor, in floats; its scale may be changed before the next
        product is taken."""
        known: list[str] = []
        done: list[str] = []
        for product in quantized(self.model):
            part = segment(self.model, product.floats, known, done)
            with ThreadPoolExecutor(self.at_once) as pool:
                found = list(pool.map(self.advance, self.results, repeat(part)))
            yield product, [np.concatenate([value.ravel() for value in values]) for values in found]
            self.keep(product, found)
            known += [product.floats] if product.floats in self.later else []
            done.append(product.integers)

    def advance(self, results: Results, part: Segment) -> list[np.ndarray]:
        """Runs a part of the graph, and returns the input of the product for each run."""
        values: list[np.ndarray] = [np.empty(0)] * len(self.inputs)
        states = [i for i, read in enumerate(self.read) if read is None]
        questions = [i for i, read in enumerate(self.read) if read is not None]
        # Questions read the keys and values of their states.
        for chosen in (states, questions) if len(part.outputs) > 1 else (range(len(self.inputs)),):
            if not chosen:
                continue
            inputs = [self.feed(results, part, i) for i in chosen]
            for i, found in zip(chosen, results.processor.outputs(part.graph, inputs)):
                values[i] = found.pop(part.outputs[0])
                results.past[i] |= found
        return values

    def feed(self, results: Results, part: Segment, i: int) -> Tensors:
        """Returns the inputs of a part of the graph for a run."""
        given = self.inputs[i] | self.integers[i] | results.floats[i]
        return {name: self.joined(results, i, name) if name in self.past else given[name] for name in part.inputs}

    def joined(self, results: Results, i: int, name: str) -> np.ndarray:
        """Returns the keys or the values that a run reads."""
        parts = [results.past[state][self.past[name]] for state in self.read[i] or ()]
        return np.concatenate(parts, axis=2) if parts else self.empty[name]

    def keep(self, product: Quantized, found: list[list[np.ndarray]]) -> None:
        """Keeps the values that later parts read: the integers, which are the same everywhere, and the floats if they
        are read at all."""
        step, zero = grid(self.model, product)
        for i, value in enumerate(found[0]):
            self.integers[i] = {product.integers: place(value, step, zero)}
        if product.floats in self.later:
            for results, values in zip(self.results, found):
                for floats, value in zip(results.floats, values):
                    floats[product.floats] = value


def settle(
    model: onnx.ModelProto, recorded: Recorder, processors: list[Processor], at_once: int = 2
) -> dict[str, float]:
    """Settles the scales of a graph in place, and returns the relative change of each changed scale."""
    changes: dict[str, float] = {}
    for product, floats in Settling(model, recorded, processors, at_once).products():
        step, zero = grid(model, product)
        places = [place(values, step, zero) for values in floats]
        found, room = settled_step(floats, step, zero)
        if found != step:
            changes[product.step] = float(found) / float(step) - 1
            store(model, product.step, np.full_like(stored(model, product.step), found))
        others = ", ".join(str(int((places[0] != other).sum())) for other in places[1:])
        change = changes.get(product.step, 0)
        said = f"{len(floats[0])} values, elsewhere otherwise: {others or 'nothing'}"
        print(f"{product.step}: {said}; changed by {change:+.5f}, room {room}", flush=True)
    return changes


def record(folder: Path, asked: Iterable[Request]) -> Recorder:
    """Records the runs of some requests."""
    recorder = Recorder(folder)
    for state, questions in asked:
        recorder.record(state, questions)
    return recorder
