import json
from collections import Counter
from random import Random

import pytest

from training.data.groups import one_hot
from training.data.question import choice, noul, score
from training.data.rows import Row, state_key
from training.data.wording import covers_the_rest, is_none
from training.generate.written import SERVICES, WRITTEN, written
from training.recipes.mixture import Mixture
from training.recipes.written import MOST, asked, asked_as_written

TEAMS = {"billing": "payments", "shipping": "deliveries", "tech": "outages", "other": "none of these"}


@pytest.fixture(scope="module")
def rows():
    return list(written())


def none_is_likeliest(one):
    """Whether the likeliest option of a choice means "none of these"."""
    if one.question["type"] != "choice":
        return False
    name, text = list(one.question["criteria"].items())[one.target.index(max(one.target))]
    return covers_the_rest(name, text)


def row(question, label, state="The parcel never came."):
    """Returns a written row."""
    return Row(WRITTEN, state, question, label)


def test_yes_is_right_as_often_as_no(rows):
    said = [bool(one.label) for one in rows if one.question["type"] == "noul"]
    assert 0.45 < sum(said) / len(said) < 0.55


def test_no_yes_no_question_describes_its_sides(rows):
    assert not any("criteria" in one.question for one in rows if one.question["type"] == "noul")


def test_no_place_among_the_options_is_right_too_often(rows):
    choices = [one for one in rows if one.source == WRITTEN and one.question["type"] == "choice"]
    places = Counter(list(one.question["criteria"]).index(one.label) for one in choices)
    assert max(places.values()) < 0.4 * len(choices)


def test_every_state_has_several_questions(rows):
    counts = Counter(state_key(one.state) for one in rows if one.source == WRITTEN)
    assert min(counts.values()) >= 3


def test_every_option_of_a_service_has_messages(rows):
    messages: dict[str, Counter[str]] = {}
    for one in rows:
        if one.source == SERVICES:
            messages.setdefault(json.dumps(one.question), Counter())[one.label] += 1
    assert messages
    for question, counts in messages.items():
        assert set(counts) == set(json.loads(question)["criteria"])


def test_a_choice_keeps_its_answer_in_every_form():
    rng = Random(3)
    for _ in range(300):
        made = asked(rng, row(choice("Who?", TEAMS), "shipping"))
        names = list(made.question["criteria"])
        right = names[made.target.index(1.0)]
        text = f"{right} {made.question['criteria'][right]}"
        # Without the right option "none of these" is right.
        meanings = ("shipping", "deliver")
        left = any(
            word in f"{name} {described}".lower()
            for name, described in made.question["criteria"].items()
            for word in meanings
        )
        assert (
            any(word in text.lower() for word in meanings) if left else is_none(right, made.question["criteria"][right])
        )


def test_an_answer_is_not_taken_away_where_none_is_an_amount_or_other_belongs_to_a_name():
    rng = Random(8)
    for names, right in (
        ({"none": "", "one": "", "two": ""}, "one"),
        ({"me": "", "other drivers": "", "you": ""}, "me"),
    ):
        for _ in range(100):
            made = asked(rng, row(choice("Who or how many?", names), right))
            name, text = list(made.question["criteria"].items())[made.target.index(1.0)]
            assert right in f"{name} {text}".lower()


def test_none_of_these_stays_where_it_is_right():
    rng = Random(4)
    for _ in range(200):
        made = asked(rng, row(choice("Who?", TEAMS), "other"))
        assert sum(made.target) == 1
        assert 2 <= len(made.target) <= len(TEAMS)


def test_a_score_is_asked_from_both_ends_and_as_a_choice():
    rng, seen = Random(5), set()
    levels = ["cold", "mild", "hot"]
    for _ in range(200):
        made = asked(rng, row(score("How warm?", levels), 0))
        options = list(made.question["criteria"])
        assert options[made.target.index(1.0)] == "cold"
        seen.add((made.question["type"], options[0] == "cold"))
    assert {("score", True), ("score", False), ("choice", True), ("choice", False)} <= seen


def test_a_step_asks_some_of_the_questions_and_keeps_named_keys():
    rng = Random(6)
    many = [row(noul(f"Is `due` before day {i}?"), i > 4, {"due": 4}) for i in range(8)]
    for _ in range(20):
        group = asked_as_written(rng, many)
        assert len(group.asked) == MOST
        assert "due" in group.state
        assert all(one.target in (one_hot(2, 0), one_hot(2, 1)) for one in group.asked)


def test_a_state_is_a_text_a_record_or_a_list():
    rng = Random(7)
    for state in ("It rains.", {"rain": True}, ["rain", "wind"]):
        for _ in range(30):
            assert "rain" in asked_as_written(rng, [row(noul("Is it dry?"), False, state)]).state


def test_the_mixture_asks_them_and_learns_their_labels(rows):
    mixture = Mixture(rows, 1)
    mixture.weights = [float(name.startswith((WRITTEN, SERVICES))) for name in mixture.names]
    found = Counter()
    for encoded in mixture.pool(0, 200):
        found[encoded.group.source] += 1
        assert not any(one.kept for one in encoded.group.asked)
        # A part of what is learned from written rows is a guess, and of services where none of the options is right.
        surest = max(max(one.target) for one in encoded.group.asked)
        if encoded.group.source == WRITTEN:
            assert surest < 0.95
        else:
            assert surest == 1 or none_is_likeliest(encoded.group.asked[0])
    assert set(found) == {WRITTEN, SERVICES}
