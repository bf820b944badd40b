"""Rows that are rated on levels are asked on other scales, with the same answer."""

from random import Random

import pytest

from training.data.question import score
from training.data.rows import Row
from training.generate.written import RANKED, written
from training.recipes.levels import ALL_RATED, ALL_SCALES, ask_levels, on_scale
from training.recipes.wordings.scales import Scale, merged

LEVELS = {
    "sigma": 5,
    "splunk": 4,
    "onestop": 3,
    "stsb_en": 6,
    "emobank": 3,
    "query_wellformedness": 3,
    "perspectrum": 4,
    "goemotions": 3,
    "prom_alerts": 3,
    **dict.fromkeys(RANKED, 5),
}


@pytest.mark.parametrize("source", ALL_SCALES)
def test_a_scale_has_a_name_for_each_place_and_keeps_the_order(source):
    for scale in ALL_SCALES[source]:
        assert len(scale.places) == LEVELS[source], scale
        assert sorted(scale.places) == list(scale.places), scale
        assert set(scale.places) == set(range(len(scale.names))) and len(set(scale.names)) == len(scale.names), scale


def test_levels_under_other_names_keep_their_place_and_share_their_votes():
    row = Row("sigma", "a rule", score("How bad?", ["a", "b", "c", "d", "e"]), 3, [0.0, 0.1, 0.2, 0.4, 0.3])
    made, question = on_scale(row, row.question, merged("00112", "low", "middle", "high"))
    assert made.question == question == score("How bad?", ["low", "middle", "high"]) and made.label == 1
    assert made.soft == pytest.approx([0.1, 0.6, 0.3])
    assert on_scale(row, row.question, Scale(("low", "high"), (0, 1))) == (row, row.question)


def test_every_level_is_asked_under_many_names():
    levels = ["informational", "low", "medium", "high", "critical"]
    found, right = set(), {}
    for seed in range(900):
        label = seed % len(levels)
        question = score("Severity?", levels)
        first = ask_levels(Random(seed), Row("sigma", {"title": "x"}, question, label), question).asked[0]
        names = tuple(first.question["criteria"])
        found.add(names)
        right.setdefault(names, set()).add((label, first.target.index(max(first.target))))
        assert first.question["instructions"] and sum(first.target) == pytest.approx(1)
    assert len(found) > 12 and tuple(levels) in found
    for names, pairs in right.items():
        places = [place for _, place in sorted(pairs)]
        assert places == sorted(places), names


def test_rated_sources_have_other_scales():
    assert set(ALL_RATED) <= set(ALL_SCALES) and set(RANKED) <= set(ALL_RATED)


def test_a_series_has_a_state_for_each_level(tmp_path):
    rows = [row for row in written() if row.source in RANKED]
    assert len(rows) > 800 and {row.label for row in rows} == set(range(5))
    (tmp_path / "ranked").mkdir()
    short = ['{"instructions": "How hot?", "criteria": ["cold", "hot"]}', '{"states": ["ice"]}']
    (tmp_path / "ranked" / "heat.jsonl").write_text("\n".join(short))
    with pytest.raises(ValueError, match=r"heat\.jsonl:2: 1 states for 2 levels"):
        list(written(tmp_path))
