"""Commands refuse what they cannot do in one line that says what is wrong, and read all the rest."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training.__main__ import main
from training.data.layout import base_folder, encode, state_text, tokens, unlabelled
from training.data.question import noul
from training.data.rows import HELD_OUT, TRAIN, Row, read_rows, write_rows
from training.distil.reader import load_reader
from training.train.checkpoint import STATE, STEPS, Plan

from .command import command

QUESTION = noul("Is it red?")
GOOD = {"state": "a red thing", "q": QUESTION, "label": True}
ROOT = Path(__file__).parents[2]


def without(name):
    """Returns a row that lacks one part."""
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"state": "a"', "no JSON: Expecting ',' delimiter at column 14"),
        ("[1, 2]", "a row is an object"),
        (json.dumps(without("state")), "the row has no `state`"),
        (json.dumps(without("q")), "the row has no `q`"),
        (json.dumps(without("label")), "the row has no `label`"),
        (json.dumps(GOOD | {"q": "Is it red?"}), "`q` is no object"),
        (json.dumps(GOOD | {"q": {"instructions": "?"}}), "the question has no 'type'"),
        (json.dumps(GOOD | {"soft": [2, -1, 0]}), r"`soft` is \[2, -1, 0\], no list of shares from 0 up"),
        (json.dumps(GOOD | {"soft": [float("nan"), 1]}), "no list of shares"),
        (json.dumps(GOOD | {"soft": ["0.5", 0.5]}), "no list of shares"),
        (json.dumps(GOOD | {"soft": 0.5}), "no list of shares"),
        (json.dumps(GOOD | {"soft": [0.5, 0.25, 0.25]}), "`soft` has 3 shares for 2 options"),
        (json.dumps(GOOD | {"soft": [0.5, 0.4]}), "the shares of `soft` add up to 0.9, not to 1"),
    ],
)
def test_a_line_that_is_no_row_is_refused_with_its_file_and_number(line, what, tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^own\.jsonl:3: .*{what}"):
        list(read_rows(path))


def test_rounded_shares_are_read(tmp_path):
    write_rows(tmp_path / "own.jsonl", [Row("own", "a", QUESTION, True, [0.33, 0.66])])
    assert next(read_rows(tmp_path / "own.jsonl")).soft == [0.33, 0.66]


def test_half_of_a_file_is_refused_with_its_name(tmp_path):
    path = tmp_path / "own.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode())[:-4])
    with pytest.raises(ValueError, match=r"^own\.jsonl\.gz, after line"):
        list(read_rows(path))
    path.write_text("no gzip", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^own\.jsonl\.gz, after line 0"):
        list(read_rows(path))


def test_half_a_surrogate_pair_is_read_as_the_server_reads_it():
    assert tokens("a\ud83d b") == tokens("a\ufffd b") and tokens("\ude00") == tokens("\ufffd")
    assert state_text("a\ud83d b") == "a\ufffd b" and state_text("a\U0001f600") == "a\U0001f600"
    assert state_text({"a": "\ud83d"}) == r'{"a":"\ufffd"}'
    half, whole = (encode(unlabelled("own", f"a{end}", noul(f"b{end}"))) for end in ("\ud83d", "\ufffd"))
    assert half.ids == whole.ids


def test_rows_with_half_a_surrogate_pair_are_prepared_like_others(tmp_path):
    rows = [Row("own", {"a": f"{place} b\ud83d"}, noul("Is it?"), True, None) for place in range(8)]
    assert write_rows(tmp_path / "train" / "own.jsonl", rows) == len(rows)
    assert list(read_rows(tmp_path / "train" / "own.jsonl")) == rows
    command("data", data=tmp_path, out=tmp_path / "rows", generated=300, likeness=0)
    prepared = [row for name in (TRAIN, HELD_OUT) for row in read_rows(tmp_path / "rows" / name)]
    assert sorted(str(row.state) for row in prepared if row.source == "own") == [str(row.state) for row in rows]


def test_planned_steps_follow_the_file_as_long_as_it_holds_a_number(tmp_path, capsys):
    path, plan = tmp_path / STEPS, Plan(tmp_path, 100)
    assert plan.steps() == 100
    path.write_text("40\n", encoding="utf-8")
    assert plan.steps() == 40 and not capsys.readouterr().err
    for text in ("", '{"ste', "null", "true", '"60"', "[60]", "NaN", "Infinity"):
        path.write_text(text, encoding="utf-8")
        assert plan.steps() == 40, text
    assert capsys.readouterr().err == f"{path}: no number, so 40 steps stay planned\n"
    path.write_text("60", encoding="utf-8")
    assert plan.steps() == 60
    path.unlink()
    assert plan.steps() == 100


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Returns the folder of prepared generated rows."""
    folder = tmp_path_factory.mktemp("rows")
    command("data", out=folder, generated=300, likeness=0)
    return folder


@pytest.fixture(scope="module")
def run(rows, tmp_path_factory):
    """Returns the folder of a run of one step."""
    out = tmp_path_factory.mktemp("run")
    train(rows, out, 1)
    return out


def train(rows, out, steps, *more):
    """Trains for `steps` small steps, with the lowest layers as they are."""
    small = ("--frozen", "5", "--batch-tokens", "128", "--pool", "4")
    # The last of two values of an option counts.
    main(["train", "--rows", str(rows), "--out", str(out), "--steps", str(steps), *small, *more])


def progress(folder):
    """Returns the finished steps of a run."""
    return torch.load(folder / STATE, weights_only=True)["progress"]["step"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--seed", "1"), "--seed was 0 and is 1$"),
        (("--int8", "--pool", "8"), "--pool was 4 and is 8, --int8 was off and is on$"),
        (("--frozen", "2"), "--frozen was 5 and is 2$"),
        (("--batch-tokens", "256", "--bf16"), "--batch-tokens was 128 and is 256, --bf16 was off and is on$"),
        (("--consistency", "0.5"), "--consistency was 0.7 and is 0.5$"),
        (("--start", "other", "--keep", "0.5"), "--start was not given and is other, --keep was 0.0 and is 0.5$"),
    ],
)
def test_a_run_does_not_go_on_with_other_options(more, told, rows, run):
    before = sorted(run.iterdir())
    with pytest.raises(SystemExit, match=told) as refused:
        train(rows, run, 2, *more)
    assert str(refused.value).startswith(f"{run}: ") and "\n" not in str(refused.value)
    assert sorted(run.iterdir()) == before and progress(run) == 1


def test_a_run_goes_on_with_other_steps_and_threads_and_from_before_options_were_saved(rows, run, tmp_path):
    saved = torch.load(run / STATE, weights_only=True)
    assert saved.pop("options")["--frozen"] == 5
    torch.save(saved, tmp_path / STATE)
    with pytest.raises(SystemExit, match="the run there began with another --frozen"):
        train(rows, tmp_path, 2, "--frozen", "2")
    (tmp_path / STEPS).write_text("", encoding="utf-8")
    train(rows, tmp_path, 2, "--seed", "1")
    train(rows, tmp_path, 3, "--seed", "1", "--threads", "1", "--decay", "1", "--save-seconds", "9")
    assert progress(tmp_path) == 3
    with pytest.raises(SystemExit, match="--seed was 1 and is 0"):
        train(rows, tmp_path, 3)


def told(*given, **environment):
    """Runs a command in its own process, and returns its exit status and what it says on stderr."""
    asked = [sys.executable, "-m", "training", *map(str, given)]
    found = subprocess.run(asked, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    return found.returncode, found.stderr


def test_a_missing_folder_ends_a_command_with_one_line_and_leaves_nothing_behind(tmp_path):
    out, missing = tmp_path / "out", tmp_path / "missing"
    line = f"python -m training train: {missing / TRAIN}: No such file or directory\n"
    assert told("train", "--rows", missing, "--out", out) == (1, line)
    assert not out.exists()
    status, said = told("train", "--rows", missing, "--out", out, SVC_TRAINING_TRACEBACK="1")
    assert status == 1 and said.startswith("Traceback")


def test_malformed_rows_end_a_command_with_one_line(tmp_path):
    (tmp_path / "rows").mkdir()
    with gzip.open(tmp_path / "rows" / TRAIN, "wt") as out:
        out.write("{\n")
    status, said = told("train", "--rows", tmp_path / "rows", "--out", tmp_path / "out")
    assert status == 1 and said.startswith(f"python -m training train: {TRAIN}:1: no JSON: ") and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_a_device_that_is_not_there_is_refused_before_a_folder_is_made(device, rows, tmp_path):
    with pytest.raises(ValueError, match=f"^--device {device}: "):
        command("train", rows=rows, out=tmp_path / "out", device=device)
    for name in ("teach", "distil"):
        needed = {"batches": rows, "start": rows, "out": tmp_path / "out/one", "seconds": 1, "device": device}
        with pytest.raises(ValueError, match=f"^--device {device}: "):
            command(name, **needed, **({"teacher": rows} if name == "distil" else {}))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("train", ("--pool", "0"), "argument --pool: '0' is no whole number from 1 up"),
        ("train", ("--threads", "-1"), "argument --threads: '-1' is no whole number from 0 up"),
        ("train", ("--frozen", "9"), "argument --frozen: '9' is no whole number from 0 to 6"),
        ("train", ("--rate", "nan"), "argument --rate: 'nan' is no number from 0 up"),
        ("train", ("--correct", "=3"), "argument --correct: '=3' names no source"),
        ("train", ("--correct", "comments=x"), "argument --correct: 'x' is no number from 0.01 to 100"),
        ("train", ("--correct", "comments=0"), "argument --correct: '0' is no number from 0.01 to 100"),
        ("evaluate", ("--limit", "0"), "argument --limit: '0' is no whole number from 1 up"),
        ("export", ("--version", "abc"), "argument --version: 'abc' is no version such as"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused(name, given, said, capsys):
    with pytest.raises(SystemExit) as refused:
        main([name, *given])
    assert refused.value.code == 2 and said in capsys.readouterr().err.splitlines()[-1]


@pytest.fixture
def no_checkpoint(tmp_path):
    """Returns a file that is no checkpoint."""
    path = tmp_path / "README.md"
    path.write_text("# Not weights\n", encoding="utf-8")
    return path


def test_what_is_no_checkpoint_is_refused_with_its_name(rows, run, no_checkpoint, tmp_path):
    asked = [
        ("train", {"rows": rows, "out": tmp_path / "out", "start": no_checkpoint}),
        ("look", {"checkpoint": no_checkpoint, "data": tmp_path}),
        ("average", {"first": no_checkpoint, "second": no_checkpoint, "out": tmp_path / "out/average"}),
        ("export", {"checkpoint": no_checkpoint, "out": tmp_path / "out", "version": "0.0.1"}),
    ]
    for name, options in asked:
        with pytest.raises(ValueError, match=f"^{no_checkpoint}: no safetensors file: ") as refused:
            command(name, **options)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=f"^{run / 'checkpoint.safetensors'}: no file of `teach`"):
        load_reader(run / "checkpoint.safetensors")
    other = base_folder() / "model.safetensors"
    with pytest.raises(ValueError, match=f"^{other}: not the weights of all-mpnet-base-v2$"):
        load_reader(base_folder())
    half = tmp_path / "half"
    half.mkdir()
    (half / STATE).write_bytes((run / STATE).read_bytes()[:5000])
    with pytest.raises(ValueError, match=f"^{half / STATE}: no whole file of torch.save"):
        train(rows, half, 2)


def test_what_is_no_json_of_its_kind_is_refused_with_its_name(rows, run, no_checkpoint, tmp_path):
    results = tmp_path / "results.json"
    results.write_text('{"name": "svc-small"}', encoding="utf-8")
    with pytest.raises(ValueError, match="the results lack sets, together"):
        command("card", folder=tmp_path, results=results)
    with pytest.raises(ValueError, match=f"^{no_checkpoint}: no JSON: "):
        command("card", folder=tmp_path, results=no_checkpoint)
    weights = run / "checkpoint.safetensors"
    with pytest.raises(ValueError, match=f"^{no_checkpoint}: no JSON: "):
        command("export", checkpoint=weights, out=tmp_path / "out", version="0.0.1", ranges=no_checkpoint)
    needed = {"folder": ROOT / "models/svc-small", "out": tmp_path / "out/results.json"}
    with pytest.raises(ValueError, match=f"^{results}: no results of `evaluate` with sets"):
        command("evaluate", **needed, against=results)
    with pytest.raises(ValueError, match=r"^--parts sets needs --data"):
        command("evaluate", **needed, parts="sets")
    with pytest.raises(ValueError, match=r"^--parts coherence needs --rows"):
        command("evaluate", **needed, parts="coherence")
    assert not (tmp_path / "out").exists()


def test_without_held_out_rows_nothing_is_fitted(run, tmp_path):
    write_rows(tmp_path / HELD_OUT, [])
    weights = run / "checkpoint.safetensors"
    with pytest.raises(ValueError, match="there are no held-out rows to fit to"):
        command("calibrate", checkpoint=weights, rows=tmp_path, out=tmp_path / "out")
    with pytest.raises(ValueError, match="there are no rows to take ranges from"):
        command("export", checkpoint=weights, rows=tmp_path, out=tmp_path / "out", version="0.0.1")


def test_a_part_that_fails_loses_none_of_those_before_it(tmp_path, monkeypatch):
    monkeypatch.setattr("training.commands.evaluate.battery", lambda _: 1 / 0)
    out = tmp_path / "results.json"
    with pytest.raises(ZeroDivisionError):
        command("evaluate", folder=ROOT / "models/svc-small", out=out, parts=["cases", "battery"])
    assert len(json.loads(out.read_text(encoding="utf-8"))["cases"]) > 5
