"""Runs the same graph on several processors: this one, and those of other programs."""

import json
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx

from ..data.rows import State
from ..folder.reader import Folder, KvCache, Questions, Tensors, TokenSequence, make_session


def write_tensors(path: Path, runs: list[Tensors]) -> None:
    """Writes the tensors of each run: a line of JSON with their types and shapes, then their bytes one after
    another."""
    head = [{name: {"type": str(value.dtype), "dims": value.shape} for name, value in run.items()} for run in runs]
    with path.open("wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        for run in runs:
            for value in run.values():
                file.write(np.ascontiguousarray(value).tobytes())


def read_tensors(path: Path) -> list[Tensors]:
    """Returns the tensors from a file of `write_tensors`."""
    head, _, data = path.read_bytes().partition(b"\n")
    runs: list[Tensors] = []
    at = 0
    for shapes in json.loads(head):
        run: Tensors = {}
        for name, shape in shapes.items():
            kind, count = np.dtype(shape["type"]), int(np.prod(shape["dims"], dtype=np.int64))
            run[name] = np.frombuffer(data, kind, count, at).reshape(shape["dims"])
            at += count * kind.itemsize
        runs.append(run)
    return runs


class Processor(Protocol):
    """A processor that runs graphs."""

    def outputs(self, graph: onnx.ModelProto, runs: list[Tensors]) -> list[Tensors]:
        """Returns the graph's outputs for each run's inputs."""
        ...


class Here:
    """This processor."""

    def outputs(self, graph: onnx.ModelProto, runs: list[Tensors]) -> list[Tensors]:
        """Returns the graph's outputs for each run's inputs."""
        session = make_session(graph.SerializeToString())
        names = [output.name for output in session.get_outputs()]
        return [dict(zip(names, session.run(names, run))) for run in runs]


class Runner:
    """Another processor, or another build of the runtime: a command that gets a graph, a file of inputs, and the path
    of the file for the outputs."""

    def __init__(self, command: str) -> None:
        self.name, self.command = command, shlex.split(command)

    def outputs(self, graph: onnx.ModelProto, runs: list[Tensors]) -> list[Tensors]:
        """Returns the graph's outputs for each run's inputs; fails if the command does."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ("segment.onnx", "inputs", "outputs")]
            onnx.save(graph, str(paths[0]))
            write_tensors(paths[1], runs)
            done = subprocess.run([*self.command, *map(str, paths)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"settle: {self.name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
            return read_tensors(paths[2])


class Recorder(Folder):
    """A folder that records the inputs of each of its runs: the ids, and the runs whose keys and values are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.inputs: list[Tensors] = []
        self.read: list[list[int] | None] = []
        self.state_runs: list[int] = []

    def record(self, state: State, questions: Questions) -> None:
        """Answers a request without the keys and values of earlier ones."""
        self.prefilled, self.state_runs = None, []
        self.golden(state, questions)

    def run(self, outputs: list[str], sequence: TokenSequence, past: KvCache) -> list[np.ndarray]:
        """Runs the graph once and returns its outputs."""
        if outputs is self.present:
            self.state_runs.append(len(self.inputs))
        self.read.append(None if outputs is self.present else list(self.state_runs))
        self.inputs.append(self.feed(sequence))
        return super().run(outputs, sequence, past)
