"""`settle`: finds scales of the int8 inputs with which the reference requests are answered alike on every processor."""

import argparse
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Iterator

import numpy as np
import onnx

from .export import write_golden
from ..folder.reader import digest
from ..folder.golden import requests
from ..quantize.processors import Here, Recorder, Runner, Tensors
from ..quantize.segments import Quantized, Segment, needed_later, quantized, segment, store, stored

# A scale is changed in steps of this fraction of itself, and by less than 1 %.
STEP = 2**-17
MOST_STEPS = 1280
# The room of a settled scale: it stays settled if the processors' floats were further apart on either side by this
# fraction of their distance. The values are tried in this order.
ROOMS = (1.0, 0.5, 0.25, 0.0)
BLOCK = 1 << 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="an int8 model folder")
    parser.add_argument("--out", type=Path, required=True, help="the settled model folder")
    parser.add_argument(
        "--runner",
        action="append",
        default=[],
        metavar="COMMAND",
        help="runs a graph on another processor, such as 'env ... node training/runner.mjs'; again for each",
    )
    parser.add_argument("--version", help="of the settled folder (default: that of --folder)")
    parser.add_argument("--at-once", type=int, default=2, help="commands that run at a time (default: %(default)s)")


@dataclass
class Processor:
    """A processor and its results: for each run the floats that later products need, and the keys and values."""

    program: Here | Runner
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
    return all(
        np.array_equal(place(below[at : at + BLOCK], step, zero), place(above[at : at + BLOCK], step, zero))
        for at in blocks
    )


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
        self, model: onnx.ModelProto, recorded: Recorder, programs: list[Here | Runner], at_once: int = 2
    ) -> None:
        self.model, self.inputs, self.read, self.at_once = model, recorded.inputs, recorded.read, at_once
        self.past = {"past" + name.removeprefix("present"): name for name in recorded.present}
        self.empty = dict(zip(recorded.past, recorded.empty()))
        self.integers: list[Tensors] = [{} for _ in self.inputs]
        self.processors = [
            Processor(program, [{} for _ in self.inputs], [{} for _ in self.inputs]) for program in programs
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
                found = list(pool.map(lambda processor: self.advance(processor, part), self.processors))
            yield product, [np.concatenate([value.ravel() for value in values]) for values in found]
            self.keep(product, found)
            known += [product.floats] if product.floats in self.later else []
            done.append(product.integers)

    def advance(self, processor: Processor, part: Segment) -> list[np.ndarray]:
        """Runs a part of the graph, and returns the input of the product for each run."""
        values: list[np.ndarray] = [np.empty(0)] * len(self.inputs)
        states = [i for i, read in enumerate(self.read) if read is None]
        questions = [i for i, read in enumerate(self.read) if read is not None]
        # Questions read the keys and values of their states.
        for chosen in (states, questions) if len(part.outputs) > 1 else (range(len(self.inputs)),):
            if not chosen:
                continue
            for i, found in zip(
                chosen, processor.program.outputs(part.graph, [self.feed(processor, part, i) for i in chosen])
            ):
                values[i] = found.pop(part.outputs[0])
                processor.past[i] |= found
        return values

    def feed(self, processor: Processor, part: Segment, i: int) -> Tensors:
        """Returns the inputs of a part of the graph for a run."""
        given = self.inputs[i] | self.integers[i] | processor.floats[i]
        return {name: self.joined(processor, i, name) if name in self.past else given[name] for name in part.inputs}

    def joined(self, processor: Processor, i: int, name: str) -> np.ndarray:
        """Returns the keys or the values that a run reads."""
        parts = [processor.past[state][self.past[name]] for state in self.read[i] or ()]
        return np.concatenate(parts, axis=2) if parts else self.empty[name]

    def keep(self, product: Quantized, found: list[list[np.ndarray]]) -> None:
        """Keeps the values that later parts read: the integers, which are the same everywhere, and the floats if they
        are read at all."""
        step, zero = grid(self.model, product)
        for i, value in enumerate(found[0]):
            self.integers[i] = {product.integers: place(value, step, zero)}
        if product.floats in self.later:
            for processor, values in zip(self.processors, found):
                for floats, value in zip(processor.floats, values):
                    floats[product.floats] = value


def settle(
    model: onnx.ModelProto, recorded: Recorder, programs: list[Here | Runner], at_once: int = 2
) -> dict[str, float]:
    """Settles the scales of a graph in place, and returns the relative change of each changed scale."""
    changes = {}
    for product, floats in Settling(model, recorded, programs, at_once).products():
        step, zero = grid(model, product)
        places = [place(values, step, zero) for values in floats]
        found, room = settled_step(floats, step, zero)
        if found != step:
            changes[product.step] = float(found) / float(step) - 1
            store(model, product.step, np.full_like(stored(model, product.step), found))
        others = ", ".join(str(int((places[0] != other).sum())) for other in places[1:])
        print(
            f"{product.step}: {len(floats[0])} values, elsewhere otherwise: {others or 'nothing'}; changed by {changes.get(product.step, 0):+.5f}, room {room}",
            flush=True,
        )
    return changes


def record(folder: Path, asked: Iterable[tuple[Any, dict[str, Any]]]) -> Recorder:
    """Records the runs of some requests."""
    recorder = Recorder(folder)
    for state, questions in asked:
        recorder.record(state, questions)
    return recorder


def write_settled(args: argparse.Namespace, model: onnx.ModelProto) -> None:
    """Writes the folder with another graph and its reference answers."""
    args.out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(args.out / "model.onnx"))
    config = json.loads((args.folder / "config.json").read_text(encoding="utf-8")) | {
        "sha256": digest(args.out / "model.onnx")
    }
    config |= {"version": args.version} if args.version else {}
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(args.folder / "tokenizer.json", args.out / "tokenizer.json")
    write_golden(args.out)


def run(args: argparse.Namespace) -> None:
    """Writes the settled folder with its reference answers, and prints how many scales were changed and the largest
    change."""
    recorded, model = record(args.folder, requests()), onnx.load(str(args.folder / "model.onnx"))
    print(f"{len(recorded.inputs)} runs, {sum(len(run['input_ids']) for run in recorded.inputs)} tokens", flush=True)
    changes = settle(model, recorded, [Here(), *map(Runner, args.runner)], args.at_once)
    write_settled(args, model)
    most = max(map(abs, changes.values()), default=0)
    print(f"{args.out}: {len(changes)} of {len(quantized(model))} scales changed, by {100 * most:.2f} % at most")
