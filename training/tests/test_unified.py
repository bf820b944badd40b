import numpy as np
import pytest

from training.calibration.fitting import applied, fit_temperatures
from training.data.layout import encode_question
from training.data.question import choice, noul, score
from training.data.rows import Row
from training.data.unified import plain, unified

QUESTION = "Is it late?"


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        (choice(QUESTION, {"yes": "Yes", "no": "No"}), [1, 0]),
        (choice(QUESTION, {"No": "", "Yes": "true"}), [0, 1]),
        ({"type": "choice", "instructions": QUESTION, "criteria": ["true", "false"]}, [1, 0]),
        (score(QUESTION, ["No", "Yes"]), [0, 1]),
        (score(QUESTION, ["true", "false"]), [1, 0]),
    ],
)
def test_yes_or_no_is_read_as_the_same_noul_in_every_form(asked, places):
    reading = unified(asked)
    assert reading.question == noul(QUESTION) and reading.places == places
    head, sides = encode_question(noul(QUESTION))
    assert encode_question(asked) == (head, [sides[place] for place in places])
    config = {"temperature": {"noul": 2.0, "choice": 9.0, "score": 9.0}, "noul_bias": {"question": 0.5}, "unify": True}
    logits, temperature = applied(config, asked, np.zeros(2))
    assert temperature == 2.0 and logits.tolist() == [1.0 * place for place in places]
    assert applied(config | {"unify": False}, asked, np.zeros(2))[1] == 9.0


def test_the_meanings_of_the_sides_are_read_too():
    meanings = {"true": "after noon", "false": "before noon"}
    assert unified(choice(QUESTION, {"yes": "after noon", "no": "before noon"})).question == noul(QUESTION, meanings)


def test_options_of_one_description_are_read_once_and_share_evenly():
    asked = choice(QUESTION, {"tech": "bugs", "b": "money", "sales": "", "a": "money", "c": "money"})
    reading = unified(asked)
    assert reading.question == choice(QUESTION, {"tech": "bugs", "sales": "", "a": "money"})
    assert reading.places == [0, 2, 1, 2, 2]
    config = {"temperature": {"choice": 2.0}, "unify": True}
    logits, temperature = applied(config, asked, np.zeros(5))
    assert np.exp(logits / temperature) == pytest.approx([1, 1 / 3, 1, 1 / 3, 1 / 3])


def test_levels_in_words_are_read_as_the_options_of_a_choice():
    for levels in (["low", "2 or 3", "高い"], ["高い", "2 or 3", "low"]):
        asked = score(QUESTION, levels)
        reading = unified(asked)
        assert reading.question == choice(QUESTION, dict.fromkeys(levels, "")) and reading.places == [0, 1, 2]
        assert encode_question(asked) == encode_question(reading.question)
        config = {"temperature": {"noul": 9.0, "choice": 2.0, "score": 9.0}, "unify": True}
        assert applied(config, asked, np.zeros(3))[1] == 2.0


def test_the_temperature_of_levels_in_words_is_fitted_for_choices():
    rows = [Row("own", "a", score(QUESTION, ["low", "high"]), label) for label in (0, 0, 0, 1)]
    found = fit_temperatures(rows, [np.array([4.0, 0.0])] * 4, [0, 0, 0, 1])
    assert found["choice"] == pytest.approx(4 / np.log(3), rel=0.01) and found["score"] == found["noul"] == 1.0


@pytest.mark.parametrize(
    "asked",
    [
        noul(QUESTION, {"true": "no", "false": "yes"}),
        choice(QUESTION, {"yes": "", "false": ""}),
        choice(QUESTION, {"yes": "", "no": "", "maybe": ""}),
        score(QUESTION, ["same", "same"]),
        score(QUESTION, ["1", "2", "3+"]),
        score(QUESTION, ["low", "+"]),
    ],
)
def test_other_questions_are_read_as_they_are(asked):
    assert unified(asked) == plain(asked)
