import csv
import json
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from training.commands.calibrate import values_of
from training.commands.finetune import read_own
from training.data.groups import Asked, Group
from training.data.layout import encode, state_text
from training.data.question import option_keys
from training.folder.golden import DOCUMENTED, odd_requests
from training.folder.graph import build
from training.folder.reader import Folder
from training.folder.writer import About, write_folder
from training.model.batches import collate
from training.model.served import keep_integers, served_ranges
from training.model.weights import load_model, save_model
from training.quantize.ranges import read_ranges, simulate
from training.train.checkpoint import STATE
from training.train.optimizer import share_of_rate

from .command import command


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Returns the folder of prepared generated rows."""
    folder = tmp_path_factory.mktemp("rows")
    command("data", out=folder, generated=1500, likeness=300)
    return folder


def train(rows, out, steps, *more):
    """Trains for `steps` small steps."""
    command("train", *more, rows=rows, out=out, steps=steps, batch_tokens=256, pool=32)


@pytest.fixture(scope="session")
def trained(prepared, tmp_path_factory):
    """Returns the folder of a run of four steps."""
    out = tmp_path_factory.mktemp("run")
    train(prepared, out, 4)
    return out


def test_the_commands_make_a_folder_whose_answers_are_its_golden_ones_and_a_card(prepared, trained, tmp_path):
    calibrated, folder, results = tmp_path / "calibrated", tmp_path / "model", tmp_path / "results.json"
    command("calibrate", checkpoint=trained / "checkpoint.safetensors", rows=prepared, out=calibrated, per_source=30)
    command(
        "export",
        checkpoint=calibrated / "checkpoint.safetensors",
        rows=prepared,
        out=folder,
        version="9.9.9",
        samples=20,
    )
    served = Folder(folder)
    assert served.config["version"] == "9.9.9"
    for line in (folder / "golden.jsonl").read_text(encoding="utf-8").splitlines()[:6]:
        golden = json.loads(line)
        assert served.golden(golden["request"]["state"], golden["request"]["questions"]) == golden
    (tmp_path / "data/dev").mkdir(parents=True)
    (tmp_path / "data/dev/own.jsonl.gz").write_bytes((prepared / "held-out.jsonl.gz").read_bytes())
    command(
        "evaluate",
        folder=folder,
        data=tmp_path / "data",
        rows=prepared,
        out=results,
        limit=5,
        parts=["sets", "coherence", "cases", "bias"],
    )
    found = json.loads(results.read_text(encoding="utf-8"))
    assert found["sets"]["own"]["rows"] == 5 and 0 <= found["coherence"]["and"]["deviation"] <= 1
    found["battery"] = {"noul": {"rows": 1, "accuracy": 1.0, "calibration_error": 0.0}}
    found["needle"] = {"cases": 1, "alone": 1.0, "buried": 1.0, "tokens": 16000}
    results.write_text(json.dumps(found), encoding="utf-8")
    command("card", folder=folder, results=results)
    said = (folder / "README.md").read_text(encoding="utf-8")
    assert "| own | 5 |" in said and f"up to {found['bias']['toxic_widest']['range']:.2f} (" in said


def test_a_calibration_keeps_what_a_folder_was_fitted_to_or_says_why_not(prepared, trained, tmp_path):
    kept = Path(__file__).parents[2] / "models" / "svc-small"
    values = values_of(kept)
    config = json.loads((kept / "config.json").read_text(encoding="utf-8"))
    for name in ("temperature", "temperature_by_options", "noul_bias"):
        assert values.get(name) == config.get(name)
    options = {"checkpoint": trained / "checkpoint.safetensors", "rows": prepared, "per_source": 30, "out": tmp_path}
    for more, message in (
        ({"keep_of": kept}, "too few held-out rows offer"),
        ({"keep_of": kept, "shift": 1.5}, "--shift does not go with --keep-of"),
        ({"keep_of": trained / "checkpoint.safetensors"}, "checkpoint.safetensors"),
    ):
        with pytest.raises((ValueError, OSError), match=message):
            command("calibrate", **options, **more)
    assert not (tmp_path / "calibration.json").exists()


def assert_same_end(one, two):
    """Asserts that the runs in two folders have the same progress and weights."""
    first, second = (torch.load(folder / STATE, weights_only=True) for folder in (one, two))
    assert first["progress"] == second["progress"]
    for name, value in first["model"].items():
        assert torch.equal(value, second["model"][name]), name


def test_a_run_that_was_killed_ends_where_an_unbroken_one_does(prepared, trained, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            train(prepared, tmp_path, 4, "--save-seconds", "0")
    train(prepared, tmp_path, 4)
    assert_same_end(trained, tmp_path)


def test_a_run_that_is_made_longer_ends_where_a_long_one_does(prepared, tmp_path):
    train(prepared, tmp_path, 2, "--decay", "0")
    assert len((tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    train(prepared, tmp_path, 2, "--decay", "0")
    train(prepared, tmp_path, 4, "--decay", "0")
    train(prepared, tmp_path / "whole", 4, "--decay", "0")
    assert_same_end(tmp_path, tmp_path / "whole")


def test_a_run_that_lacks_weights_that_came_later_goes_on(prepared, trained, tmp_path):
    saved = torch.load(trained / STATE, weights_only=True)
    for part in ("model", "average"):
        saved[part] = {name: value for name, value in saved[part].items() if not name.startswith("none")}
    torch.save(saved, tmp_path / STATE)
    train(prepared, tmp_path, 4)
    one, two = (torch.load(folder / STATE, weights_only=True) for folder in (trained, tmp_path))
    for name, value in one["model"].items():
        assert torch.equal(value, two["model"][name]), name


def test_products_in_bfloat16_train_nearly_the_same(prepared, trained, tmp_path):
    train(prepared, tmp_path, 4, "--bf16")
    exact, rounded = (torch.load(folder / STATE, weights_only=True)["model"] for folder in (trained, tmp_path))
    start = load_model().state_dict()
    trained_weights = [name for name in start if name.startswith("layers.") and name.endswith("weight")]
    apart, way = (
        sum((one[name] - other[name]).abs().sum().item() for name in trained_weights)
        for one, other in ((exact, rounded), (exact, start))
    )
    assert 0 < apart < 0.2 * way


def test_a_run_that_keeps_an_earlier_models_answers_learns_others(prepared, trained, tmp_path):
    start = trained / "checkpoint.safetensors"
    train(prepared, tmp_path / "free", 4, "--start", str(start), "--consistency", "0")
    train(prepared, tmp_path / "kept", 4, "--start", str(start), "--consistency", "0", "--keep", "1")
    before, free, kept = (
        load_model(path).layers[5].down.weight
        for path in (start, tmp_path / "free/checkpoint.safetensors", tmp_path / "kept/checkpoint.safetensors")
    )
    assert not torch.equal(free, kept) and not torch.equal(before, kept)
    for more, message in (
        (("--keep", "0.5"), "--keep needs --start"),
        (("--keep", "1.5"), r"--keep is 1\.5, not 0 to 1"),
        (("--correct", "own"), "--correct needs --keep"),
        (("--start", str(start), "--keep", "1", "--correct", "other=2"), "--correct other=2: the mixture has no such"),
        (("--crossed", "0.5"), r"--crossed is 0\.5; it is less than 1, and needs --keep"),
    ):
        with pytest.raises((SystemExit, ValueError), match=message):
            train(prepared, tmp_path / "none", 4, *more)
        assert not (tmp_path / "none").exists()


def stop_after(patch, steps):
    """Interrupts training when it asks for the rate of the step after `steps`."""

    def rate(step, planned, *more):
        if step >= steps:
            raise KeyboardInterrupt
        return share_of_rate(step, planned, *more)

    patch.setattr("training.commands.train.share_of_rate", rate)


UNTITLED = About("test", "0.0.0", dict.fromkeys(("choice", "score", "noul"), 1.0))


def odd_model():
    """Returns the base model, with random numbers for weights that are all alike before training."""
    torch.manual_seed(3)
    model = load_model().eval()
    torch.nn.init.normal_(model.act.weight, std=0.1)
    torch.nn.init.normal_(model.none.weight, std=0.1)
    torch.nn.init.constant_(model.none.growth, 0.5)
    torch.nn.init.constant_(model.none.offset, 0.75)
    for layer in model.layers:
        torch.nn.init.uniform_(layer.sharpness, 0.0, 0.5)
    return model


def asked():
    """Yields the text of a state, a question about it, and both as a batch of one, for a plain request and for those at
    the edges of the layout."""
    for state, questions in (DOCUMENTED[0], *odd_requests()):
        for question in questions.values():
            text = state_text(state)
            yield (
                text,
                question,
                collate([encode(Group("x", text, [Asked(question, [0.0] * len(option_keys(question)))]))]),
            )


def test_the_graph_answers_as_the_model_does(tmp_path):
    model = odd_model()
    write_folder(tmp_path, build(model), UNTITLED)
    folder = Folder(tmp_path)
    for state, question, batch in asked():
        with torch.no_grad():
            expected = model(batch)[0].numpy()
        answer = folder.ask(state, question)
        assert np.abs(answer.logits - expected).max() < 2e-3
        assert 0 <= answer.act <= 1


def test_a_run_in_int8_sees_what_its_graph_will_answer(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr("training.commands.train.RANGE_GROUPS", 24)
    run, folder = tmp_path / "run", tmp_path / "model"
    train(prepared, run, 2, "--int8")
    calibrated, ranges = tmp_path / "calibrated", run / "ranges.json"
    command(
        "calibrate",
        checkpoint=run / "checkpoint.safetensors",
        rows=prepared,
        out=calibrated,
        per_source=5,
        ranges=ranges,
    )
    command(
        "export",
        checkpoint=calibrated / "checkpoint.safetensors",
        rows=prepared,
        out=folder,
        version="9.9.9",
        samples=20,
        ranges=ranges,
    )
    served, exact, rounded = Folder(folder), load_model(folder).eval(), load_model(folder).eval()
    simulate(rounded, served_ranges(folder))
    apart = {"exact": 0.0, "rounded": 0.0}
    for state, question, batch in asked():
        found = served.ask(state, question).logits
        with torch.no_grad():
            for name, model in (("exact", exact), ("rounded", rounded)):
                apart[name] += float(np.abs(found - model(batch)[0].numpy()).sum())
    # Values that round differently at the end of a step, and everything that follows from them, remain.
    assert apart["rounded"] < 0.6 * apart["exact"], apart
    # A run that starts from the folder continues with its ranges.
    train(prepared, tmp_path / "next", 1, "--int8", "--start", str(folder))
    begun, went_on = read_ranges(ranges), read_ranges(tmp_path / "next/ranges.json")
    for name, ends in begun.items():
        step = (ends[1] - ends[0]) / 255
        assert np.allclose(ends, went_on[name], atol=step), name


def test_weights_of_a_served_folder_are_those_it_was_made_of(tmp_path):
    model = odd_model()
    write_folder(tmp_path, build(model), UNTITLED)
    again = load_model(tmp_path).state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(value, again[name]), name


def test_a_folder_that_is_exported_again_is_the_same_but_for_its_version(tmp_path):
    command("export", checkpoint=EMBEDDED, out=tmp_path, version="9.9.9")
    config, again = (
        json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in (EMBEDDED, tmp_path)
    )
    assert again == config | {"version": "9.9.9"}
    for name in ("model.onnx", "tokenizer.json"):
        assert (tmp_path / name).read_bytes() == (EMBEDDED / name).read_bytes(), name


def test_integers_of_a_folder_that_saturate_are_not_taken_over(tmp_path):
    graph, older = (onnx.load(str(EMBEDDED / "model.onnx")) for _ in range(2))
    weights = [
        tensor
        for tensor in older.graph.initializer
        if tensor.data_type == onnx.TensorProto.INT8 and not tensor.name.startswith("word.")
    ]
    expected = {tensor.name: tensor.raw_data for tensor in graph.graph.initializer}
    # The change affects two neighbours of each output of a product, and two rows of the table of words, which is in no
    # product.
    changed = {
        tensor.name: np.array(numpy_helper.to_array(tensor))
        for tensor in (weights[0], *(it for it in older.graph.initializer if it.name == "word.weight"))
    }
    for tensor in older.graph.initializer:
        if tensor.name in changed:
            changed[tensor.name][:2] = 127
            tensor.raw_data = changed[tensor.name].tobytes()
    onnx.save(older, str(tmp_path / "model.onnx"))
    keep_integers(graph, tmp_path, inputs=True)
    found = {tensor.name: tensor.raw_data for tensor in graph.graph.initializer}
    assert found == expected | {"word.weight": changed["word.weight"].tobytes()}


CRITERIA = {"x": "", "y": ""}
EMBEDDED = Path(__file__).parents[2] / "models/svc-small"


def own_rows(path):
    """Writes labelled rows of a rule that no instruction tells: red things are x, green ones y."""
    rng, things = random.Random(0), {"x": ("tomato", "blood", "ruby"), "y": ("grass", "leaf", "lime")}
    rights = [rng.choice("xy") for _ in range(150)]
    rows = [
        {
            "state": f"item {i}: {rng.choice(things[right])}",
            "type": "choice",
            "instructions": "Which bin?",
            "criteria": json.dumps(CRITERIA),
            "label": right,
        }
        for i, right in enumerate(rights)
    ]
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        items = (
            {
                "state": row["state"],
                "q": {"type": "choice", "instructions": row["instructions"], "criteria": CRITERIA},
                "label": row["label"],
            }
            for row in rows
        )
        path.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    return path


def test_rows_are_the_same_from_csv_and_from_json_lines(tmp_path):
    one, two = (read_own(own_rows(tmp_path / name)) for name in ("own.csv", "own.jsonl"))
    assert one == two and len(one) == 150


# Only the rows tell that red things are x. The embedded model goes by the texts of options, and one with new heads has
# to learn what options are: both need a while.
@pytest.mark.parametrize(("kind", "steps"), [("checkpoint", 96), ("folder in int8", 80)])
def test_a_users_own_rows_become_a_served_folder_that_has_learned_them(kind, steps, tmp_path):
    start, served = EMBEDDED, tmp_path / "served"
    if kind == "checkpoint":
        torch.manual_seed(0)
        start = tmp_path / "start.safetensors"
        save_model(load_model(), start)
    command(
        "finetune",
        own=own_rows(tmp_path / "own.csv"),
        start=start,
        out=served,
        steps=steps,
        batch_tokens=512,
        generated=1,
        rate="3e-4",
    )
    folder, question = Folder(served), {"type": "choice", "instructions": "Which bin?", "criteria": CRITERIA}
    answers = [
        option_keys(question)[int(folder.probabilities(f"item 500: {word}", question).argmax())]
        for word in ("tomato", "blood", "ruby", "grass", "leaf", "lime")
    ]
    assert sum(answer == right for answer, right in zip(answers, "xxxyyy")) >= 5
    if kind == "folder in int8":
        assert served_ranges(served) == served_ranges(start)
        # Thirty held-out rows tell nothing about temperatures.
        before = json.loads((start / "config.json").read_text(encoding="utf-8"))
        for values in ("temperature", "temperature_by_options", "noul_bias"):
            assert folder.config.get(values) == before.get(values)


def test_a_line_of_csv_that_is_no_row_is_named(tmp_path):
    path = tmp_path / "own.csv"
    for text, message in (
        ("state,type,instructions\nhere,noul,Is it?\n", "own.csv:2: the column label is missing"),
        ("state,type,instructions,criteria,label\nhere,choice,Which?,{a,a\n", "own.csv:2: the criteria are not JSON"),
        ("state,type,instructions,criteria,label\nhere,noul,Is it?,,perhaps\n", "own.csv:2: label 'perhaps'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_own(path)


def test_too_few_rows_to_judge_by_are_refused(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"state": f"s{i}", "q": {"type": "noul", "instructions": "?"}, "label": True}) for i in range(30)
        )
    )
    with pytest.raises(ValueError, match="30 rows leave 6 to judge by"):
        command("finetune", own=path, start="unused", out=tmp_path / "served")


def test_an_average_lies_between_its_two_models(prepared, trained, tmp_path):
    train(prepared, tmp_path / "other", 4, "--seed", "1")
    first, second, out = (
        trained / "checkpoint.safetensors",
        tmp_path / "other/checkpoint.safetensors",
        tmp_path / "average.safetensors",
    )
    command("average", first=first, second=second, share="0.25", out=out)
    one, two, between = (load_model(path).layers[5].out.weight for path in (first, second, out))
    assert not torch.equal(one, two)
    assert torch.allclose(between, 0.75 * one + 0.25 * two, atol=2e-4)
    with pytest.raises(SystemExit, match=r"--share is 1\.5, not 0 to 1"):
        command("average", first=first, second=second, share="1.5", out=out)
