"""Answers requests with the reference code: reads a JSON list of bodies from stdin, writes a line of JSON for each.

    python answer.py FIXTURES MODEL

FIXTURES is the folder that holds reference.py; MODEL is a model folder in the shared-state layout.
"""
import json
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported
sys.path.insert(0, sys.argv[1])

import numpy as np
from reference import SharedState


class Model(SharedState):
    """A model whose graph may have no action head; its action outputs are then NaN."""

    def run(self, outputs, run, kind, memory, count=0):
        known = {output.name for output in self.session.get_outputs()}
        results = iter(super().run([name for name in outputs if name in known], run, kind, memory, count))
        return [next(results) if name in known else np.full(2, np.nan) for name in outputs]


model = Model(Path(sys.argv[2]))
for body in json.load(sys.stdin):
    print(json.dumps(model.golden("", body)))
