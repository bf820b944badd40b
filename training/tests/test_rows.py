import json
import os
import subprocess
import sys
from random import Random

import pytest

from training.data import rows
from training.data.question import label_index
from training.data.wording import question_of
from training.generate import comments, customers, issues
from training.generate.records import COMPARE
from training.generate.rows import generated

from .command import command


def test_rows_come_back_as_they_were_written(tmp_path):
    made = list(generated(seed=1, count=50))
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert rows.write_rows(tmp_path / name, made) == len(made)
        assert list(rows.read_rows(tmp_path / name)) == made


def test_the_same_rows_make_the_same_file(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        rows.write_rows(tmp_path / name, generated(seed=1, count=50))
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_rows_are_the_same_in_every_process():
    script = """
import hashlib
from training.generate.rows import generated
print(hashlib.sha256(repr(list(generated(1, 2000))).encode()).hexdigest())
"""
    printed = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", script]
        printed.add(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    assert len(printed) == 1


def test_a_label_that_is_no_option_is_refused_with_its_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    question = {"type": "choice", "instructions": "?", "criteria": {"a": "", "b": ""}}
    path.write_text(
        json.dumps({"state": "x", "q": question, "label": "a"})
        + "\n"
        + json.dumps({"state": "x", "q": question, "label": "c"})
        + "\n"
    )
    with pytest.raises(ValueError, match=r"bad\.jsonl:2: label 'c'"):
        list(rows.read_rows(path))


def test_no_state_is_both_trained_on_and_held_out(tmp_path):
    command("data", out=tmp_path, generated=3000, likeness=60)
    train, held = (
        {rows.state_key(row.state) for row in rows.read_rows(tmp_path / name)} for name in (rows.TRAIN, rows.HELD_OUT)
    )
    assert train and held and not train & held


def test_rows_of_an_evaluation_set_are_not_trained_on(tmp_path):
    made = [rows.Row("own", f"state {i}", {"type": "noul", "instructions": "?"}, True) for i in range(20)]
    rows.write_rows(tmp_path / "in/train/own.jsonl", made)
    rows.write_rows(tmp_path / "in/dev/set.jsonl", made[:5])
    command("data", data=tmp_path / "in", out=tmp_path / "out", generated=0)
    files = (rows.TRAIN, rows.HELD_OUT)
    kept = [row.state for name in files for row in rows.read_rows(tmp_path / "out" / name) if row.source == "own"]
    assert sorted(kept) == sorted(row.state for row in made[5:])


def test_generated_answers_are_balanced_and_valid():
    made = list(generated(seed=3, count=4000))
    nouls = [row.label for row in made if row.question["type"] == "noul"]
    assert 0.35 < sum(nouls) / len(nouls) < 0.65
    for row in made:
        label_index(row.question, row.label)


def test_what_a_customer_says_settles_what_is_asked():
    rng = Random(4)
    for _ in range(2000):
        state, question, label = customers.customer(rng)
        row = rows.Row("generated", state, question, label)
        label_index(row.question, row.label)
    for one in customers.ASPECTS:
        assert one.yes | one.open <= customers.SAID.keys() and not one.yes & one.open
        assert not set(one.asked) & set(one.denied)


def test_a_comment_is_toxic_when_one_of_its_statements_attacks():
    rng, attacks = Random(5), {text for texts in comments.ATTACKS.values() for text in texts}
    assert not attacks & set(comments.HARMLESS)
    asked = dict(comments.TOXIC)
    ends = {text.split("{")[0].lower() for text in attacks if text.count("{") == 1 and text.endswith("}")}
    for _ in range(2000):
        state, question, label = comments.comment(rng)
        label_index(question, label)
        text = (state if isinstance(state, str) else next(iter(state.values()))).lower()
        if question["instructions"] in asked and any(text.startswith(end) for end in ends if end):
            assert label == asked[question["instructions"]]


def test_an_issue_says_what_its_kind_is():
    rng = Random(6)
    for kind in issues.BODIES:
        for _ in range(200):
            assert "{" not in str(issues.filed(rng, kind)).replace("{'", "")
    for _ in range(2000):
        _, question, label = issues.issue(rng)
        label_index(question, label)


def test_a_statement_becomes_the_question_that_people_would_ask():
    assert question_of("A man is asleep.") == "Is a man asleep?"
    assert question_of("There are two dogs in the park.") == "Are there two dogs in the park?"
    assert question_of("Dogs bark.") is None
    assert question_of("He will not go.") is None
    assert question_of("The man who is asleep snores") is None


def test_comparisons_hold_at_the_boundary_as_their_words_say():
    said = {phrase: holds for phrases, holds in COMPARE for phrase in phrases}
    assert not said["over"](500, 500) and said["over"](501, 500)
    assert said["at least"](500, 500) and not said["at least"](499, 500)
    assert not said["under"](500, 500) and said["at most"](500, 500)
