from collections import Counter
from random import Random
from string import ascii_uppercase

import pytest

from training.data.groups import one_hot
from training.data.question import choice
from training.data.rows import Row
from training.generate.exams import EXAMS, LESSONS, exams
from training.recipes.exams import TEXTS, examined
from training.recipes.mixture import Mixture
from training.recipes.pools import make_pools
from training.recipes.targets import KNOWN

OPTIONS = {"A": "ammonia", "B": "helium", "C": "methane", "D": "steam"}


@pytest.fixture(scope="module")
def rows():
    return list(exams())


def row(**state):
    """Returns a question about a gas, whose right option is helium."""
    return Row(EXAMS, {"question": "Which gas is noble?", **state}, choice("Answer `question`.", OPTIONS), "B")


def right_option(asked):
    """Returns the text of the option that is right."""
    name, text = list(asked.question["criteria"].items())[asked.target.index(1.0)]
    return f"{name} {text}"


def test_a_question_with_a_passage_stands_also_without_it(rows):
    alone = {one.state["question"]: one for one in rows if one.source == EXAMS}
    lessons = [one for one in rows if one.source == LESSONS]
    assert len(alone) > 1000
    assert 0.25 < len(lessons) / len(alone) < 0.45
    for one in lessons:
        other = alone[one.state["question"]]
        assert (one.question, one.label) == (other.question, other.label)
        assert set(other.state) == {"question"}


def test_no_place_among_the_options_is_right_too_often(rows):
    places = Counter(ascii_uppercase.index(one.label) for one in rows)
    assert max(places.values()) < 0.35 * len(rows)


def test_the_longest_option_is_seldom_right(rows):
    def is_longest(one):
        lengths = {name: len(text) for name, text in one.question["criteria"].items()}
        return lengths[one.label] == max(lengths.values())

    assert sum(map(is_longest, rows)) < 0.4 * len(rows)


def test_the_right_option_stays_right_in_every_form():
    rng, seen = Random(2), Counter()
    texts = make_pools([Row("own", f"A short text, number {i}.", choice("Which?", OPTIONS), "A") for i in range(5)])
    for i in range(400):
        one = row(passage="Noble is what reacts with nothing, like helium.") if i % 2 else row()
        group = examined(rng, one, one.question, texts)
        first, *others = group.asked
        assert "helium" in right_option(first)
        assert "Which gas is noble?" in group.state + first.question["instructions"]
        assert ("reacts with nothing" in group.state) == bool(i % 2)
        for other in others:
            assert other.target == one_hot(2, int("helium" in other.question["instructions"]))
        seen[len(first.target), len(others), "short text" in group.state] += 1
    assert {(3, 0, False), (4, 0, True), (4, 1, False), (4, 1, True)} <= set(seen)


def test_a_key_that_instructions_name_is_there():
    rng, none = Random(3), make_pools([])
    for _ in range(200):
        one = row(passage="Helium is noble.")
        group = examined(rng, one, one.question, none)
        named = [word for word in (*TEXTS, "question") if f"`{word}`" in group.asked[0].question["instructions"]]
        assert all(name in group.state for name in named)


def test_the_mixture_learns_them_as_a_guess_unless_a_passage_holds_the_answer(rows):
    mixture = Mixture(rows, 1)
    mixture.weights = [float(name.startswith((EXAMS, LESSONS))) for name in mixture.names]
    found = Counter()
    for encoded in mixture.pool(0, 100):
        source = encoded.group.source
        found[source] += 1
        assert not any(asked.kept for asked in encoded.group.asked)
        target = encoded.group.asked[0].target
        assert max(target) == pytest.approx(KNOWN[source] + (1 - KNOWN[source]) / len(target))
    assert set(found) == {EXAMS, LESSONS}
