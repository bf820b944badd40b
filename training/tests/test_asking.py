from collections import defaultdict
from random import Random

import numpy as np
import pytest
import torch

from training.calibration.fitting import applied, calibrated
from training.calibration.metrics import area_under_curve, best_threshold
from training.data.groups import Asked, Group
from training.data.layout import encode
from training.data.rows import Row
from training.evaluate.figures import among_candidates, drawn
from training.model.batches import collate
from training.recipes import asking, properties
from training.recipes.asking import Draw, pick
from training.recipes.mixture import Mixture
from training.recipes.wordings.properties import SPAM
from training.recipes.wordings.verdicts import RELATE_YES
from training.similarity.teacher import buckets
from training.train.loss import eye_loss
from training.train.optimizer import share_of_rate

from .test_groups import sources

# Words of claims and questions that a text is spam.
SAID_OF_SPAM = ("is spam", "is junk", "junk folder", "unsolicited", "sell or swindle", "filter should stop", "in bulk")


def test_held_out_wordings_are_never_trained_with():
    for wordings in (asking.STRAIGHT, asking.QUESTIONED, SPAM.asked, RELATE_YES):
        found = {}
        for held_out in (False, True):
            rng = Draw(1)
            rng.held_out = held_out
            found[held_out] = {pick(rng, wordings) for _ in range(600)}
        kept = set(wordings[-(len(wordings) // asking.HELD_OUT_SHARE) :])
        assert found[True] == kept and found[False] | kept == set(wordings)


def test_yes_is_right_in_half_of_what_is_asked_and_in_no_wording_always():
    by_source, about_spam = defaultdict(list), defaultdict(list)
    for row in Mixture(list(sources()), seed=6).pool(0, 4500):
        for asked in row.group.asked:
            if asked.question["type"] == "noul":
                by_source[row.group.source].append(asked.target[1])
                if row.group.source == "spamassassin":
                    said = [words for words in SAID_OF_SPAM if words in asked.question["instructions"]]
                    for words in said:
                        about_spam[words].append(asked.target[1] > 0.5)
    for source in (
        "spamassassin",
        "cad_sentiment",
        "boolq_train1886",
        "perspectrum",
        "med_help",
        "snli_dev",
        "persona",
    ):
        values = by_source[source]
        # snli_dev and persona have only one side here, so only the wordings that turn a claim around give the other
        # side.
        low, high = (0.4, 0.6) if source not in ("snli_dev", "persona") else (0.05, 0.95)
        assert len(values) > 20 and low < np.mean(values) < high, (source, len(values), np.mean(values))
    assert len(about_spam) == len(SAID_OF_SPAM)
    for words, found in about_spam.items():
        assert len(found) > 9 and 0.25 < np.mean(found) < 0.75, (words, len(found), np.mean(found))


def test_a_property_that_a_source_cannot_have_is_not_its_own_and_is_denied():
    for source, absent in properties.ABSENT.items():
        assert properties.BY_SOURCE.get(source) not in absent
        rng, into = Draw(source), asking.Scene({"": "a text"}, None, "text")
        for _ in range(100):
            properties.ask_absent(rng, into, source, 1.0)
        assert len(into.asked) == 100
        # Four of five are claims and questions that the property is there, a few of them turned into their opposite.
        assert 0.08 < np.mean([asked.target[1] for asked in into.asked]) < 0.45
    properties.ask_absent(rng, into, "boolq_train1886", 1.0)
    assert len(into.asked) == 100
    moderated = [properties.moderated(rng, "comments").asked for _ in range(1000)]
    asked_of_spam = [it for asked in moderated for it in asked if "spam" in it.question["instructions"].lower()]
    assert len(asked_of_spam) > 12 and np.mean([asked.target[1] for asked in asked_of_spam]) < 0.45


def test_what_a_property_row_says_does_not_depend_on_the_side_that_it_was_asked_from():
    for text, label, holds in (
        ("The message is spam.", True, 1.0),
        ("This is a legitimate email.", True, 0.0),
        ("Is this a genuine message that the recipient would want?", False, 1.0),
    ):
        row = Row("spamassassin", "x", {"type": "noul", "instructions": text}, label)
        assert properties.property_of(row) == (SPAM, holds)


def test_the_rate_is_constant_until_the_end_comes_in_sight():
    rates = [share_of_rate(step, 10_000, 100, 2000) for step in range(10_000)]
    assert (
        rates[0] < 0.02
        and rates[99] == rates[5000] == rates[7999] == 1.0
        and rates[9000] == pytest.approx(0.5)
        and rates[-1] < 0.01
    )
    # This is the same run after it was told to end sooner.
    assert share_of_rate(5000, 6000, 100, 2000) == 0.5


def test_the_similarity_term_is_taught_by_what_is_alike():
    question = {"type": "choice", "instructions": "Which?", "criteria": {"a": "", "b": "", "none": ""}}
    batch = collate([encode(Group("likeness", "x", [Asked(question, [0.5, 0.2, 0.3], True, [0, 1])]))])
    fitting = torch.tensor([[(torch.tensor(2.5).log() / 14).item(), 0.0, 5.0]])
    least, other = eye_loss(fitting, batch), eye_loss(torch.zeros(1, 3), batch)
    target = torch.tensor([5 / 7, 2 / 7])
    assert least.item() == pytest.approx(-(target * target.log()).sum().item(), abs=1e-4) and other > least


def test_distances_fall_into_the_buckets_of_the_teacher():
    found = buckets(torch.arange(200)[None])[0]
    assert found[0, 0] == 0 and found[7, 0] == 7 and found[0, 7] == 16 + 7
    assert found[8, 0] == 8 and found[199, 0] == 15 and found[0, 199] == 31 and found[16, 0] == 10


def test_the_area_and_the_best_threshold_are_those_of_counting():
    rng = np.random.default_rng(2)
    scores, labels = rng.integers(0, 12, 60).astype(float), rng.random(60) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in scores[labels] for b in scores[~labels]]
    assert area_under_curve(scores, labels) == pytest.approx(np.mean(pairs))
    best, at = best_threshold(scores, labels)
    assert best == pytest.approx(max(np.mean((scores > t) == labels) for t in np.arange(-1, 13, 0.5)))
    assert np.mean((scores > at) == labels) == pytest.approx(best)


def test_sixteen_candidates_hold_the_right_one_and_are_the_same_each_time():
    row = Row("x", "s", {"type": "choice", "instructions": "?", "criteria": {f"o{i}": "" for i in range(40)}}, "o7")
    assert drawn(row, 3) == drawn(row, 3) != drawn(row, 4) and drawn(row, 3)[0] == 7 and len(set(drawn(row, 3))) == 16


def test_choices_are_asked_again_with_fewer_options():
    def ask(rows):
        """Returns logits that name the last option of seventeen or fewer, and else the first."""
        counts = [len(row.question["criteria"]) for row in rows]
        asked.extend(counts)
        return [np.eye(count)[-1 if count < 18 else 0] for count in counts]

    names = {f"o{i}": "" for i in range(40)}
    criteria, asked = {**names, "none": "none of these"}, []
    question = {"type": "choice", "instructions": "?", "criteria": criteria}
    rows = [Row("x", "s", question, "none"), Row("x", "s", question, "o0")]
    assert among_candidates(rows, ask) == {"among_16": 0.5, "without_none": 1.0}
    assert asked == [16, 16, 40]
    assert among_candidates([Row("x", "s", {"type": "noul", "instructions": "?"}, True)], ask) == {}


def test_a_held_out_mixture_asks_otherwise():
    rows = list(sources())
    train, held = (
        {
            asked.question["instructions"]
            for row in Mixture(rows, 1, held_out).pool(0, 200)
            if row.group.source == "spamassassin"
            for asked in row.group.asked
        }
        for held_out in (False, True)
    )
    assert train and held and not train & held
    assert Random(1).random() == Draw(1).random()


def test_only_what_helps_sources_that_were_left_out_is_fitted():
    rng = np.random.default_rng(4)
    rows, logits, labels = [], [], []
    for source in range(8):
        for i in range(60):
            # Statements are answered "no" too often in all sources; questions too often in half of the sources, too
            # seldom in the others.
            for text, bias in (("It is late.", -1.0), ("Is it late?", 1.0 if source % 2 else -1.0)):
                margin = rng.normal() * 2
                label = int(rng.random() < 1 / (1 + np.exp(-margin)))
                rows.append(Row(f"s{source}", f"{i}", {"type": "noul", "instructions": text}, bool(label)))
                logits.append(np.array([0.0, margin + bias]))
                labels.append(label)
            many = 12 if i % 2 else 2
            own = rng.normal(size=many) * 3
            label = int(rng.choice(many, p=np.exp(own) / np.exp(own).sum()))
            rows.append(
                Row(
                    f"s{source}",
                    f"{i}",
                    {"type": "choice", "instructions": "?", "criteria": {f"o{k}": "" for k in range(many)}},
                    f"o{label}",
                )
            )
            logits.append(own * (3.0 if many == 12 else 1.0))
            labels.append(label)
    found = calibrated(rows, logits, labels)
    temperature = found["temperature"]["noul"]
    assert found["noul_bias"] == {"statement": pytest.approx(1.0 / temperature, abs=0.35)}
    by_options = {one["min"]: one["temperature"] for one in found["temperature_by_options"]}
    assert by_options == {11: pytest.approx(3.0, rel=0.25)}
    assert found["temperature"]["choice"] == pytest.approx(1.0, rel=0.25)
    moved, used = applied({**found}, rows[0].question, np.array([0.0, 0.0]))
    assert moved[1] == pytest.approx(found["noul_bias"]["statement"] * temperature) and used == temperature
    assert applied({**found}, rows[2].question, logits[2])[1] == found["temperature"]["choice"]
    assert applied({**found}, rows[5].question, logits[5])[1] == by_options[11]
    assert applied({"temperature": {"choice": 2.0}}, rows[2].question, logits[2])[1] == 2.0
