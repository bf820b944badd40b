"""A processor whose floats differ from this one's in the last bits: a `--runner` of `settle`, run as `python
other_processor.py GRAPH INPUTS OUTPUTS`."""

import sys
from pathlib import Path

import numpy as np
import onnx

from training.folder.reader import Tensors
from training.quantize.processors import Here, read_tensors, write_tensors

# The relative difference of the floats.
APART = 1e-5


def disturbed(run: Tensors) -> Tensors:
    """Returns the same tensors except for the last bits, with the same differences each time."""
    return {
        name: (value * (1 + APART * np.random.default_rng(value.size).uniform(-1, 1, value.shape))).astype(np.float32)
        for name, value in run.items()
    }


if __name__ == "__main__":
    graph, inputs, outputs = map(Path, sys.argv[1:])
    write_tensors(outputs, [disturbed(run) for run in Here().outputs(onnx.load(str(graph)), read_tensors(inputs))])
