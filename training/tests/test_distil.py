import json
import time
from dataclasses import fields
from random import Random

import pytest
import torch

from training.commands.distil import answered
from training.commands.train import batches as batches_of_run
from training.data.groups import Asked, Group, one_hot
from training.data.layout import encode, tokenizer
from training.data.question import noul
from training.data.rows import TRAIN, read_rows
from training.distil.crossed import crossed, partly_crossed
from training.distil.prepared import Sizes, batches_of, path_of, read, stream, write
from training.distil.reader import ids_of, load_reader, places_of, save_reader, sees_of
from training.distil.timed import Clock
from training.distil.words import in_other_words, near_words
from training.model.batches import Ties, collate
from training.model.weights import load_model, save_model
from training.recipes.mixture import Mixture
from training.similarity import teacher
from training.train.checkpoint import Progress
from training.train.optimizer import share_at

from .command import command
from .every_source import every_source

SMALL = Sizes(pool=48, tokens=512, longest=512)


@pytest.fixture(scope="module")
def mixture():
    return Mixture(list(every_source()), 5)


@pytest.fixture
def small_reader(monkeypatch):
    """Returns an untrained reader with one layer."""
    monkeypatch.setattr(teacher, "LAYERS", 1)
    monkeypatch.setattr("training.distil.reader.LAYERS", 1)
    from training.distil.reader import Reader

    return Reader()


def two_questions():
    """Returns a batch of one group: a state and two yes/no questions."""
    asked = [Asked(noul(words), one_hot(2, 1)) for words in ("It is cold.", "The shop is closed today.")]
    return collate([encode(Group("own", "The shop opens at nine.", asked))], 8)


def test_what_is_asked_about_another_text_has_no_answer_and_names_no_part_of_it(mixture):
    found = crossed(Random(1), mixture, 40)
    assert len(found) == 40 and all(row.group.source.startswith("crossed:") for row in found)
    for asked in (asked for row in found for asked in row.group.asked):
        assert sum(asked.target) == 0 and "`" not in asked.question["instructions"]


def test_a_share_of_the_groups_of_a_run_is_crossed(mixture):
    batch = next(batches_of_run(mixture, Progress(), 40, 100_000, 0.25))
    assert sum(source.startswith("crossed:") for source in set(batch.sources)) and not batch.is_labelled().all()
    rows = partly_crossed(mixture, 0, 40, 0.25)
    assert [row.group.source.startswith("crossed:") for row in rows] == [False] * 30 + [True] * 10
    assert [row.ids for row in rows[:30]] == [row.ids for row in mixture.pool(0, 30)]


def test_a_file_holds_the_batches_that_its_pool_gives(mixture, tmp_path):
    batches = batches_of(mixture, 3, SMALL)
    write(tmp_path, 3, batches)
    again = read(path_of(tmp_path, 3), "cpu")
    assert len(again) == len(batches) > 3
    for one, other in zip(batches, again):
        assert one.ids.shape[1] % 8 == 0
        for field in fields(one):
            value, same = getattr(one, field.name), getattr(other, field.name)
            if isinstance(value, torch.Tensor):
                assert value.dtype == same.dtype and torch.allclose(value.float(), same.float(), atol=1e-3)
            elif isinstance(value, Ties):
                assert torch.equal(value.terms, same.terms) and torch.equal(value.signs, same.signs)
            else:
                assert value == same


def test_every_question_follows_the_state_for_the_larger_encoder():
    batch = two_questions()
    part, places, ids, sees = batch.part[0], places_of(batch)[0], ids_of(batch)[0], sees_of(batch)[0, 0]
    state = int((part > 0).sum())
    for number in (-1, -2):
        own = (part == number).nonzero().flatten()
        assert places[own].tolist() == list(range(state, state + len(own)))
        # It sees the state and all of itself, and nothing of the other question.
        assert [part[i].item() for i in sees[own[-1]].nonzero().flatten()] == [1] * state + [number] * len(own)
    words = tokenizer()
    vocabulary = [words.id_to_token(i) for i in batch.ids[0].tolist()]
    assert ids[vocabulary.index("[CLS]")] == teacher.START and ids[vocabulary.index("[SEP]")] == teacher.END
    assert ids[vocabulary.index("[MASK]")] == teacher.VOCABULARY - 1
    assert ids[vocabulary.index("shop")] == words.token_to_id("shop") + 4


def test_other_words_are_near_ones_and_leave_options_and_answers_out():
    torch.manual_seed(0)
    near, batch = near_words(load_model().word.weight), two_questions()
    words = tokenizer()
    assert words.token_to_id("excellent") in near[words.token_to_id("good")]
    assert near[words.token_to_id("[MASK]")].unique().tolist() == [words.token_to_id("[MASK]")]
    changed = torch.zeros_like(batch.ids, dtype=torch.bool)
    for _ in range(60):
        other = in_other_words(batch, near)
        changed |= other.ids != batch.ids
        assert other.target.sum() == 0 and not len(other.ties.at_most)
    assert changed[0, batch.part[0] > 0].sum() > 3 and not changed[batch.option > 0].any()


def test_the_larger_encoder_answers_what_has_no_label_and_is_mixed_into_labels(small_reader):
    batch = two_questions()
    batch.target[1] = 0
    small_reader.eval()
    own = torch.softmax(small_reader(batch), -1)
    mixed = answered(batch, small_reader, 0.25).target
    assert torch.allclose(mixed[0], 0.75 * torch.tensor([0.0, 1.0]) + 0.25 * own[0], atol=1e-6)
    assert torch.allclose(mixed[1], own[1], atol=1e-6)


def test_the_rate_follows_the_time():
    clock = Clock(10)
    assert 0 <= clock.done() < clock.done() < 0.1
    assert share_at(0.025, 0.05, 0.5) == 0.5 and share_at(0.3, 0.05, 0.5) == 1
    assert share_at(0.75, 0.05, 0.5) == 0.5 and share_at(1, 0.05, 0.5, 0.2) == pytest.approx(0.2)


def test_the_time_of_a_run_goes_by_while_it_waits_and_its_rate_begins_with_the_first_batch(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("training.distil.timed.time.monotonic", lambda: now)
    clock, late = Clock(10, now), Clock(10, now)
    now = 1006.0
    assert clock.done() == 0 and not clock.is_over()
    now = 1008.0
    assert clock.done() == 0.5
    now = 1010.0
    assert clock.done() == 1 and clock.is_over() and late.done() == 1


def test_a_run_waits_for_batches_until_its_time_is_over(tmp_path):
    for index in (0, 1, 3):
        write(tmp_path, index, [two_questions()])
    for first, expected in ((0, 2), (2, 0), (3, 1), (9, 0)):
        clock = Clock(0.3)
        assert len(list(stream(tmp_path, "cpu", clock.is_over, first))) == expected
        assert clock.is_over()


def test_runs_that_are_behind_all_batches_end_in_time_and_write_what_they_have(
    small_reader, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("training.commands.distil.near_words", lambda words: None)
    batches, untrained, start = tmp_path / "batches", tmp_path / "untrained.safetensors", tmp_path / "start.safetensors"
    batches.mkdir()
    write(batches, 0, [two_questions()])
    save_reader(small_reader, untrained)
    save_model(load_model(), start)
    shared = {"batches": batches, "seconds": 0.5, "first": 7, "device": "cpu"}
    began = time.monotonic()
    command("teach", start=untrained, out=tmp_path / "taught.safetensors", **shared)
    for more in ((), ("--int8",)):
        out = tmp_path / f"run{len(more)}"
        command("distil", *more, teacher=untrained, start=start, out=out, **shared)
        assert torch.equal(load_model(out / "checkpoint.safetensors").word.weight, load_model(start).word.weight)
        assert not (out / "ranges.json").exists()
    assert time.monotonic() - began < 60 and (tmp_path / "taught.safetensors").exists()
    line = f"{batches}: no batch from pool 7 on was there in time; nothing was learned\n"
    assert capsys.readouterr().err == 3 * line


def test_folders_of_batches_that_do_not_exist_are_refused_at_once(tmp_path):
    made, missing = tmp_path / "made", tmp_path / "missing"
    made.mkdir()
    needed = {"start": "unused", "out": tmp_path / "out/one", "seconds": 9999, "device": "cpu"}
    for folders in ({"batches": missing}, {"batches": made, "check": missing}):
        for name, more in (("teach", {}), ("distil", {"teacher": "unused"})):
            with pytest.raises(ValueError, match=f"^{missing}: there is no such folder of batches"):
                command(name, **needed, **folders, **more)
    assert not (tmp_path / "out").exists()


def test_a_larger_encoder_multiplies_in_bfloat16_on_a_cpu_if_it_is_to(small_reader):
    batch, exact = two_questions(), small_reader.eval()(two_questions())
    small_reader.bf16 = True
    with torch.no_grad():
        apart = (small_reader(batch) - exact).abs()[batch.real]
    assert 0 < apart.max() < 0.1


def test_batches_are_prepared_a_larger_encoder_learns_them_and_the_small_model_learns_from_it(
    small_reader, tmp_path, monkeypatch
):
    in_bf16, forward = [], type(small_reader).forward
    monkeypatch.setattr(
        type(small_reader), "forward", lambda self, batch: in_bf16.append(self.bf16) or forward(self, batch)
    )
    command("data", out=tmp_path / "rows", generated=600, likeness=0)
    assert sum(1 for _ in read_rows(tmp_path / "rows" / TRAIN)) > 400
    options = {"rows": tmp_path / "rows", "size": 16, "batch_tokens": 256, "crossed": 0, "processes": 2}
    command("prepare", out=tmp_path / "batches", pools=40, **options)
    command("prepare", "--held-out", out=tmp_path / "held", pools=1, **options)
    assert len(list((tmp_path / "batches").glob("*.pt"))) == 40
    save_reader(small_reader, tmp_path / "untrained.safetensors")
    untrained, taught = tmp_path / "untrained.safetensors", tmp_path / "taught.safetensors"
    shared = {"batches": tmp_path / "batches", "check": tmp_path / "held", "device": "cpu"}
    command("teach", start=untrained, out=taught, seconds=4, **shared)
    before, after = load_reader(untrained).state_dict(), load_reader(taught).state_dict()
    assert [name for name in before if not torch.equal(before[name], after[name])]
    assert torch.equal(before["encoder.word.weight"], after["encoder.word.weight"])
    assert in_bf16 and not any(in_bf16)
    in_bf16.clear()
    lower = tmp_path / "frozen.safetensors"
    command("teach", "--bf16", start=untrained, out=lower, seconds=4, frozen=1, **shared)
    after = load_reader(lower).state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved and not any(name.startswith("encoder.") for name in moved)
    start, out = tmp_path / "start.safetensors", tmp_path / "run"
    save_model(load_model(), start)
    command("distil", start=start, out=tmp_path / "labels", seconds=2, **shared)
    begun = load_model(start).state_dict()["layers.5.up.weight"]
    labels = load_model(tmp_path / "labels/checkpoint.safetensors").state_dict()
    assert not torch.equal(labels["layers.5.up.weight"], begun)
    for more, refused in (({"taught": 0.5}, "need --teacher"), ({"teacher": tmp_path}, "is a folder")):
        with pytest.raises(SystemExit, match=refused):
            command("distil", start=start, out=tmp_path / "labels", seconds=2, **more, **shared)
    command("distil", "--int8", "--bf16", teacher=taught, start=start, out=out, seconds=4, **shared)
    ranges = json.loads((tmp_path / "run/ranges.json").read_text(encoding="utf-8"))
    assert len(ranges) == 24 and all(low < 0 < high for low, high in ranges.values())
    moved = load_model(tmp_path / "run/checkpoint.safetensors").state_dict()
    assert not torch.equal(moved["layers.5.up.weight"], begun)
    assert in_bf16 and all(in_bf16)
