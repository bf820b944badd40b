"""The parts of the model card that follow from the figures of single sets."""

import json
import re

import numpy as np
import pytest

from training.calibration.metrics import interval
from training.evaluate.answers import Compared, Results
from training.evaluate.card import (
    battery_text,
    bias_text,
    both_halves,
    card,
    choices_table,
    cosine_falls,
    falls,
    jevbench_text,
    thresholds_table,
)
from training.evaluate.figures import Figures
from training.evaluate.probes import IDENTITIES, identity_bias
from training.generate import comments

ROWS = 1000


def figures(accuracy: float, majority: float, calibration_error: float = 0.05) -> Figures:
    """Returns the figures of a set of `ROWS` rows."""
    return {
        "rows": ROWS,
        "accuracy": accuracy,
        "interval": interval(round(accuracy * ROWS), ROWS),
        "majority": majority,
        "random": 0.5,
        "loss": 0.5,
        "calibration_error": calibration_error,
        "right": "",
        "removed_by_probability": 0.3,
    }


def results() -> Results:
    """Returns results of two sets that choose and one that is looked at once."""
    sets = {"sst2_dev": figures(0.8, 0.54), "hatecheck": figures(0.6, 0.7, 0.15), "cfpb_1000": figures(0.5, 0.2, 0.07)}
    sets["sst2_dev"] |= {"area": 0.9, "best_threshold_accuracy": 0.85, "yes_said": 0.4, "yes_right": 0.54}
    sets["cfpb_1000"]["among_16"] = 0.61
    first: dict[str, Compared] = {
        name: {"accuracy": 0.75, "interval": interval(750, ROWS), "calibration_error": 0.1, "gained": 0, "lost": 0}
        for name in ("hatecheck", "sst2_dev")
    }
    return {
        "name": "svc-small",
        "version": "9.9.9",
        "temperature": {},
        "sha256": "",
        "bytes": 0,
        "sets": sets,
        "cosine": {"cfpb_1000": {"accuracy": 0.4, "among_16": 0.58}},
        "against": {"name": "svc-small 0.1.0", "sets": first, "mean_calibration_error": None},
        "jevbench": {"overall": 0.651, "pillars": {"REP": 0.508, "CHO": None}, "relations": {"complement": 0.125}},
    }


def test_a_card_keeps_the_sets_apart_that_chose_and_that_were_looked_at_once():
    chose, once = both_halves(results()).split("Sets that are looked at once")
    assert "sst2_dev" in chose and "cfpb_1000" in chose and "hatecheck" not in chose
    assert "Mean accuracy over these sets: 65.0 %." in chose and "rows or more: 0.060." in chose
    assert "hatecheck" in once and "Mean accuracy over these sets: 60.0 %." in once
    assert "Mean accuracy over all of these sets: 63.3 %." in once


def test_a_card_names_the_sets_at_which_another_model_or_the_most_frequent_label_is_better_and_says_why():
    text = falls(results(), {"hatecheck": "It hides nothing."})
    wrong = (
        "- hatecheck: 60.0 instead of 75.0 of svc-small 0.1.0 and 70.0 of the most frequent label. It hides nothing."
    )
    assert text.split("\n") == ["It is worse than that on these sets:", "", wrong]


def test_a_card_without_such_sets_says_nothing_of_them():
    found = results()
    del found["sets"]["hatecheck"]
    assert falls(found, {}) == ""


def test_a_card_has_the_order_and_the_threshold_of_yes_and_no():
    assert thresholds_table(results()).endswith("| sst2_dev | 0.900 | 80.0 | 85.0 | 40.0 | 54.0 |")


def test_a_card_has_the_base_models_cosines_beside_choices():
    assert choices_table(results()).endswith("| cfpb_1000 | 50.0 | 40.0 | 61.0 | 58.0 |  |  |")


def test_a_card_names_the_choices_at_which_the_base_models_cosines_are_better():
    found = results()
    assert cosine_falls(found) == ""
    found["cosine"]["cfpb_1000"] |= {"among_16": 0.64, "without_none": 0.7}
    found["sets"]["cfpb_1000"]["without_none"] = 0.6
    assert cosine_falls(found).split("\n")[2:] == [
        "- cfpb_1000 among 16: 61.0 instead of 64.0.",
        '- cfpb_1000 without "none": 60.0 instead of 70.0.',
    ]


def test_a_card_without_all_parts_is_refused():
    with pytest.raises(ValueError, match="lack together, coherence, needle, bias, cases, battery"):
        card(results(), None, {})


def test_a_card_of_results_whose_bias_was_measured_in_another_way_is_refused():
    old = results() | {"bias": {"toxic_range": 0.1}}
    with pytest.raises(ValueError, match=r"lack .*bias as it is measured now"):
        card(old, None, {})


def test_bias_is_measured_over_terms_and_over_harmless_and_hostile_sentences(monkeypatch, tmp_path):
    class Known:
        """A model that calls toxic what names a dog, and half of what names a cat."""

        def probabilities(self, state, question):
            yes = 0.9 if "dog" in state else 0.6 if "cat" in state and "hit" in state else 0.1
            return np.array([1 - yes, yes])

    texts = {
        "terms": ["cat", "dog", "cow"],
        "harmless": ["{}", "no {}"],
        "hostile": ["hit the {}", "hit {}", "kick {}"],
    }
    monkeypatch.setattr("training.evaluate.probes.IDENTITIES", tmp_path / "texts.json")
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    found = identity_bias(Known())
    assert found["toxic"] == {"cat": 0.1, "dog": 0.9, "cow": 0.1} and found["toxic_range"] == pytest.approx(0.8)
    assert found["sentences"] == 2 and found["toxic_wide"] == 2 and found["toxic_said"] == pytest.approx(1 / 3)
    assert found["hostile_sentences"] == 3 and found["toxic_said_of_hostile"] == pytest.approx(5 / 9)
    assert found["toxic_widest"] == {"sentence": "{}", "range": pytest.approx(0.8), "term": "dog", "probability": 0.9}
    limited = identity_bias(Known(), 1)
    assert limited["sentences"] == limited["hostile_sentences"] == limited["toxic_wide"] == 1
    said = bias_text(results() | {"bias": found})
    assert "3 identity terms, each in 2 harmless sentences" in said and "range 0.80" in said
    assert "33.3 % of them, and of 55.6 % of 3 hostile sentences" in said and "In 2 of the harmless" in said
    (tmp_path / "texts.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"texts\.json: no JSON object"):
        identity_bias(Known())


def test_a_card_has_the_scores_of_jevbench_and_of_its_parts():
    said = "JevBench 0.1.0, suite jevbench-mini: 65.1 of 100; REP 50.8, complement 12.5."
    assert jevbench_text(results()) == said


def test_a_card_says_how_many_questions_of_the_battery_are_right():
    found = results() | {"battery": {"noul": {"rows": 40, "accuracy": 0.55, "calibration_error": 0.125}}}
    assert battery_text(found) == "It is right on 55.0 % of 40 yes/no questions (error of calibration 0.125)."


def test_every_probe_of_identities_names_one_term_and_is_not_learned():
    texts = json.loads(IDENTITIES.read_text(encoding="utf-8"))
    harmless, hostile = texts["harmless"], texts["hostile"]
    assert len(set(texts["terms"])) == len(texts["terms"]) > 50
    assert len(set(harmless)) == len(harmless) == 49 and len(set(hostile)) == len(hostile) == 19
    learned = {plain(text) for text in (*comments.ABOUT, *comments.AGAINST, *comments.HARMLESS)}
    for text in (*harmless, *hostile):
        assert text.count("{}") == 1 and plain(text) not in learned


def plain(text):
    """Returns a sentence or a template without its case, its end and what it names."""
    return re.sub(r"\{\w*\}", "", text).strip(" .!?").lower()
