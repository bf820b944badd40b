import json
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from training.commands import settle
from training.folder import writer
from training.folder.reader import Folder, digest
from training.quantize import settling
from training.quantize.processors import Here, Runner, read_tensors, write_tensors
from training.quantize.segments import quantized, store, stored

from .command import command
from .other_processor import disturbed

REPOSITORY = Path(__file__).parents[2]
# A model of two layers of eight dimensions in int8, with chunks of 16 tokens.
TINY = REPOSITORY / "crates/engine/tests/fixtures/shared-state-int8"
SCRIPT = Path(__file__).with_name("other_processor.py")
OTHER = shlex.join(["env", f"PYTHONPATH={REPOSITORY}", sys.executable, str(SCRIPT)])
TEXTS = (
    "the cat sat on the mat and looked at a dog",
    "",
    "my order 17 is late, where is it? " * 6,
    "yes",
    "a red lamp and two blue desks " * 3,
)
QUESTIONS = {
    "late": {"type": "noul", "instructions": "is it late?"},
    "what": {
        "type": "choice",
        "instructions": "what is it?",
        "criteria": {"a": "cat", "b": "dog", "c": "the red lamp"},
    },
    "how": {"type": "score", "instructions": "how much?", "criteria": ["low", "mid", "high"]},
}


def asked():
    """Returns a few requests: states of one and of several chunks, an empty state, and every type."""
    return [(text, QUESTIONS) for text in TEXTS]


class Other(Here):
    """The processor of `OTHER` without a program of its own."""

    def outputs(self, graph, runs):
        return [disturbed(run) for run in super().outputs(graph, runs)]


def differing(folder):
    """Returns for each product how many of its input integers differ on another processor."""
    recorded, model = settling.record(folder, asked()), onnx.load(str(folder / "model.onnx"))
    found = []
    for product, (here, there) in settling.Settling(model, recorded, [Here(), Other()]).products():
        step, zero = settling.grid(model, product)
        found.append(int((settling.place(here, step, zero) != settling.place(there, step, zero)).sum()))
    return found


def test_a_settled_folder_has_the_same_integers_on_a_processor_with_other_last_bits(tmp_path, monkeypatch, capsys):
    for module in (settle, writer):
        monkeypatch.setattr(module, "requests", asked)
    out = tmp_path / "settled"
    assert sum(differing(TINY)) > 0
    command("settle", folder=TINY, out=out, version="0.0.2", runner=OTHER)
    assert sum(differing(out)) == 0
    before, after = (onnx.load(str(folder / "model.onnx")) for folder in (TINY, out))
    steps = [(stored(before, product.step), stored(after, product.step)) for product in quantized(before)]
    changed = [float(abs(new / old - 1).item()) for old, new in steps if new != old]
    assert changed and max(changed) < 0.01
    assert f"{len(changed)} of 8 scales changed, by {100 * max(changed):.2f} % at most" in capsys.readouterr().out
    for product, (_, new) in zip(quantized(before), steps):
        store(before, product.step, new)
    assert before == after, "nothing but scales of inputs is changed"
    config, served = json.loads((out / "config.json").read_text()), Folder(out)
    assert config == json.loads((TINY / "config.json").read_text()) | {
        "version": "0.0.2",
        "sha256": digest(out / "model.onnx"),
    }
    lines = (out / "golden.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [served.golden(*request) for request in asked()]


class Whole(Folder):
    """A folder whose graph also outputs the input integers of its products."""

    def __init__(self, path: Path, names: list[str]) -> None:
        super().__init__(path)
        self.names = names
        self.integers: list[list[np.ndarray]] = []

    def run(self, outputs, sequence, past):
        found = super().run([*outputs, *self.names], sequence, past)
        self.integers.append(found[len(outputs) :])
        return found[: len(outputs)]


def test_parts_of_a_graph_one_after_the_other_have_the_integers_of_the_whole(tmp_path):
    model = onnx.load(str(TINY / "model.onnx"))
    names = [product.integers for product in quantized(model)]
    shutil.copytree(TINY, tmp_path / "whole")
    whole = onnx.load(str(TINY / "model.onnx"))
    whole.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.UINT8, None) for name in names)
    onnx.save(whole, str(tmp_path / "whole/model.onnx"))
    served = Whole(tmp_path / "whole", names)
    for request in asked():
        served.prefilled = None
        served.golden(*request)
    parts = settling.Settling(model, settling.record(TINY, asked()), [Here()])
    for i, (product, (floats,)) in enumerate(parts.products()):
        expected = np.concatenate([run[i].ravel() for run in served.integers])
        assert np.array_equal(settling.place(floats, *settling.grid(model, product)), expected), product.step


def test_of_the_scales_that_round_alike_the_nearest_is_taken_and_one_with_room_first():
    step, zero = np.float32(0.01), np.uint8(0)
    tie = 0.125
    near = [np.array([tie - 1e-6, 0.3], np.float32), np.array([tie + 1e-6, 0.3], np.float32)]
    found, room = settling.settled_step(near, step, zero)
    assert room == 1.0 and found != step and abs(found / step - 1) < 5 * settling.STEP
    assert settling.settled_step([near[0], near[0]], step, zero) == (step, 1.0)
    # At every scale, some of these values lie at a tie, so they never all round alike.
    many = np.linspace(1, 2, 10_000, dtype=np.float32)
    with pytest.raises(SystemExit, match="no scale within 1 %"):
        settling.settled_step([many, many + np.float32(1e-3)], step, zero)


def test_tensors_are_read_as_they_were_written(tmp_path):
    runs = [
        {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "none": np.zeros((1, 2, 0, 4), np.float32)},
        {},
        {"b": np.array([1, 255], np.uint8), "c": np.float32([[0.1]])},
    ]
    write_tensors(tmp_path / "tensors", runs)
    found = read_tensors(tmp_path / "tensors")
    assert [list(run) for run in found] == [list(run) for run in runs]
    for run, same in zip(runs, found):
        for name, value in run.items():
            assert (
                value.dtype == same[name].dtype
                and value.shape == same[name].shape
                and np.array_equal(value, same[name])
            )


def test_a_runner_that_fails_ends_the_command_with_what_it_said():
    failing = Runner(f"{shlex.quote(sys.executable)} -c 'raise SystemExit(\"no such processor\")'")
    with pytest.raises(SystemExit, match="exit code 1: no such processor"):
        failing.outputs(onnx.load(str(TINY / "model.onnx")), [])
