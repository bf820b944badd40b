"""The same seed gives the same rows and the same weights as before, and a run that an earlier version began goes on.

`same_bits.json` holds the results of the code at the time when it was written; `python -m
training.tests.test_same_bits` writes it again. Rows are compared by their SHA-256. Weights are compared by a few
numbers, since their last bits differ from processor to processor.
"""

import argparse
import gzip
import hashlib
import json
import pickletools
import zipfile
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
import torch

from training.commands import train
from training.data.rows import ASKED, HELD_OUT, TRAIN, write_rows
from training.evaluate import coherence, needle
from training.folder import golden
from training.generate import wishes
from training.generate.rows import generated
from training.model import encoder as models
from training.recipes.asking import Draw
from training.recipes.mixture import Mixture
from training.train import checkpoint
from training.train import optimizer as optimizers
from training.train.checkpoint import STATE, Average, Progress, Run
from training.train.log import Log

from .command import command
from .every_source import every_source

PINNED = Path(__file__).with_name("same_bits.json")
# The number of groups of each source and recipe.
GROUPS = 60
# A model that is small enough to be trained in a second.
TINY = {"WIDTH": 32, "HEADS": 4, "HEAD_DIM": 8, "LAYERS": 2, "INNER": 64}
SIMILARITY = 16
# The longest gradient that consists of roundings.
ROUNDINGS = 1e-7


def digest(value):
    """Returns the SHA-256 of a value's text."""
    return hashlib.sha256(repr(value).encode()).hexdigest()


def told(group):
    """Returns a group as plain values."""
    asked = [(one.question, one.target, one.whole, one.meant) for one in group.asked]
    return group.source, group.state, asked, [(tie.one, tie.other, tie.at_most) for tie in group.ties]


def groups_of_recipes(held_out):
    """Returns the digest of the groups that each recipe makes."""
    mixture, found = Mixture(list(every_source()), 1, held_out), defaultdict(list)
    for name in mixture.names:
        mixture.weights = [float(name == other) for other in mixture.names]
        rng = Draw(f"same:{name}")
        rng.held_out = held_out
        for _ in range(GROUPS):
            group, kind = mixture.draw(rng)
            found[kind].append(told(group))
    return {kind: digest(groups) for kind, groups in sorted(found.items())}


def made_rows():
    """Returns the digests of generated rows, of a pool as tokens, and of what the evaluation asks."""
    rows = list(every_source())
    pool = [
        (row.ids, row.positions, row.types, row.part, row.option, row.markers) for row in Mixture(rows, 2).pool(3, 200)
    ]
    asked = [(case.kind, case.state, case.questions) for case in coherence.cases(rows, 30)]
    facts = [(fact.text, fact.question, fact.answer) for fact in needle.facts(Random(23), 20)]
    return {
        "generated": digest([vars(row) for row in generated(3, 3000)]),
        "messages": digest(wishes.messages(Random(1), 500)),
        "phrases": digest(wishes.phrases()),
        "pool": digest(pool),
        "golden": digest(list(golden.requests())),
        "coherence": digest(asked),
        "facts": digest(facts),
    }


def embedded(texts, *_, **__):
    """Returns numbers that follow from the texts, with products that are exact on every processor."""
    numbers = [
        [int.from_bytes(hashlib.sha256(f"{place} {text}".encode()).digest()[:2]) % 2001 - 1000 for place in range(4)]
        for text in texts
    ]
    return torch.tensor(numbers, dtype=torch.float32).reshape(len(texts), 4) / 2048


def files_of_data(folder, patch):
    """Returns the digest of each file of rows that `data` writes."""
    patch.setattr("training.similarity.embeddings.embedded", embedded)
    rows = defaultdict(list)
    for row in every_source():
        rows[row.source].append(row)
    for source, own in rows.items():
        write_rows(folder / f"in/train/{source}.jsonl", own)
    write_rows(folder / "in/dev/set.jsonl", rows["persona"][:3])
    command("data", data=folder / "in", out=folder / "out", generated=1000, likeness=600, seed=7)
    return {
        name: hashlib.sha256(gzip.decompress((folder / "out" / name).read_bytes())).hexdigest()
        for name in (TRAIN, HELD_OUT, ASKED)
    }


def tiny_run(patch, folder):
    """Returns a run of a tiny model before its first step, and the arguments of `train`."""
    for name, value in TINY.items():
        patch.setattr(models, name, value)
    patch.setattr(optimizers, "LAYERS", TINY["LAYERS"])
    torch.manual_seed(5)
    model, args = models.Model(SIMILARITY), arguments(folder)
    return Run(model, Average(model, args.average), optimizers.make_optimizer(model, train.rates_of(args))), args


def arguments(folder):
    """Returns the arguments of `train`, with rates at which a single step shows."""
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    return parser.parse_args(["--rows", str(folder), "--out", str(folder), "--rate", "1e-2", "--head-rate", "2e-2"])


def numbers_of(tensor):
    """Returns a tensor's length, and its cosine with a fixed direction."""
    flat = tensor.detach().double().flatten()
    length, direction = flat.norm(), torch.arange(len(flat), dtype=torch.float64).cos()
    return [length.item(), (flat @ direction / (length * direction.norm()).clamp(min=1e-12)).item()]


def one_step(folder, patch):
    """Returns the loss of one training step, and the numbers of each weight's gradient and change."""
    current, args = tiny_run(patch, folder)
    model = current.model
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    log = Log(folder / "log.jsonl")
    batch = next(train.batches(Mixture(list(every_source()), 3), Progress(), 64, 2048))
    train.step(current, batch, 1.0, args, log)
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    # A gradient that should be 0, such as that of a term that all logits have in common, consists of roundings.
    moved = {name: value for name, value in trained.items() if value.grad.norm() > ROUNDINGS}
    return {
        "loss": log.window.losses[0],
        "gradients": {name: numbers_of(value.grad) for name, value in moved.items()},
        "changes": {name: numbers_of(value - start[name]) for name, value in moved.items()},
        "without a gradient": sorted(set(trained) - set(moved)),
        "unchanged": sorted(name for name, value in model.named_parameters() if torch.equal(value, start[name])),
    }


def parts_of_checkpoint(folder, patch):
    """Returns what a checkpoint holds: the names of its parts, of its weights, and of the weights of each rate."""
    current, _ = tiny_run(patch, folder)
    current.progress = Progress(3, 2, 1)
    checkpoint.save(folder, current)
    saved = torch.load(folder / STATE, weights_only=True)
    names = {id(value): name for name, value in current.model.named_parameters()}
    return {
        "parts": sorted(saved),
        "progress": saved["progress"],
        "model": {name: list(value.shape) for name, value in saved["model"].items()},
        "average": list(saved["average"]),
        "rates": [
            [group["peak"], [names[id(value)] for value in group["params"]]] for group in current.optimizer.param_groups
        ],
    }


def test_every_recipe_makes_the_same_groups_from_the_same_seed():
    pinned = json.loads(PINNED.read_text())
    for held_out in (False, True):
        assert groups_of_recipes(held_out) == pinned["held-out groups" if held_out else "groups"]


def test_rows_and_requests_are_the_same():
    assert made_rows() == json.loads(PINNED.read_text())["rows"]


def test_data_writes_the_same_rows(tmp_path, monkeypatch):
    assert files_of_data(tmp_path, monkeypatch) == json.loads(PINNED.read_text())["files"]


def test_a_training_step_moves_the_weights_in_the_same_way(tmp_path, monkeypatch):
    found, pinned = one_step(tmp_path, monkeypatch), json.loads(PINNED.read_text())["step"]
    for part in ("without a gradient", "unchanged"):
        assert found[part] == pinned[part]
    assert found["loss"] == pytest.approx(pinned["loss"], rel=1e-5)
    # AdamW makes small gradients large: those of the biases of keys, which change nothing, consist of roundings.
    for part, tolerance in (("gradients", 1e-4), ("changes", 1e-2)):
        assert list(found[part]) == list(pinned[part])
        for name, (length, cosine) in pinned[part].items():
            assert found[part][name][0] == pytest.approx(length, rel=tolerance), (part, name)
            assert found[part][name][1] == pytest.approx(cosine, abs=tolerance), (part, name)


def test_a_checkpoint_has_the_parts_that_it_always_had(tmp_path, monkeypatch):
    assert parts_of_checkpoint(tmp_path, monkeypatch) == json.loads(PINNED.read_text())["checkpoint"]


def test_a_checkpoint_names_no_module_of_the_training(tmp_path, monkeypatch):
    parts_of_checkpoint(tmp_path, monkeypatch)
    with zipfile.ZipFile(tmp_path / STATE) as archive:
        pickled = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    named = {argument.split(" ")[0] for opcode, argument, _ in pickletools.genops(pickled) if opcode.name == "GLOBAL"}
    assert named and named <= {"collections", "torch", "torch._utils"}


def write_pinned(folder):
    """Writes what the code gives now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.similarity.likeness.PHRASES_EACH", 200)
        patch.setattr("training.commands.data.ASKED_GROUPS", 200)
        pinned = {
            "groups": groups_of_recipes(False),
            "held-out groups": groups_of_recipes(True),
            "rows": made_rows(),
            "files": files_of_data(folder, patch),
            "step": one_step(folder, patch),
            "checkpoint": parts_of_checkpoint(folder, patch),
        }
    PINNED.write_text(json.dumps(pinned, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as work:
        write_pinned(Path(work))
