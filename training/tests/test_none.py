import pytest
import torch

from training.calibration.none_head import fit_growth, fit_none, means_none, none_features
from training.data.layout import encode, unlabelled
from training.data.question import choice, noul
from training.data.rows import Row
from training.data.wording import covers_the_rest
from training.model.batches import collate
from training.model.encoder import WIDTH
from training.model.weights import load_model

LABELS = ("billing", "shipping", "refund", "technical help", "account", "other")


def batch_of(question, state="The parcel never came."):
    """Returns a batch of one question."""
    return collate([encode(unlabelled("x", state, question))])


def with_growth(model, growth, offset):
    """Returns the model with a none head that takes every option as "none of these"."""
    with torch.no_grad():
        model.none.bias.fill_(40.0)
        model.none.growth.fill_(growth)
        model.none.offset.fill_(offset)
    return model.eval()


def test_options_that_mean_none_of_these_are_known():
    assert means_none(choice("Which?", {"a": "", "other": "", "N/A": "", "b": "none of the others"})).tolist() == [
        0,
        1,
        1,
        1,
    ]
    assert means_none(choice("Which?", ["a", "fallback"])).tolist() == [0, 1]
    assert not means_none(noul("Is it other?")).any()


@torch.no_grad()
def test_what_is_added_grows_with_the_logarithm_of_the_number_of_options():
    model = load_model().eval()
    for count in (2, 5, 6):
        batch = batch_of(choice("Which?", dict.fromkeys(LABELS[:count], "")))
        model.none.clear()
        plain = model(batch)
        added = with_growth(model, 0.5, 0.25)(batch) - plain
        expected = 0.5 * torch.tensor(float(count)).log() - 0.25
        assert added.flatten().tolist() == pytest.approx([expected.item()] * count, abs=1e-4)


def test_a_growth_is_found_again():
    torch.manual_seed(2)
    model, growth, offset = load_model(), 0.6, 1.2
    logits, shares, labels = [], [], []
    for _ in range(4000):
        count = int(torch.randint(2, 60, ()))
        own = torch.randn(count)
        share = torch.zeros(count)
        share[-1] = 1.0
        moved = own + share * (growth * torch.tensor(float(count)).log() - offset)
        labels.append(torch.distributions.Categorical(logits=moved).sample())
        logits.append(own)
        shares.append(share)
    fit_growth(model.none, logits, shares, torch.stack(labels), torch.ones(len(labels)))
    assert model.none.growth.item() == pytest.approx(growth, abs=0.11)
    assert model.none.offset.item() == pytest.approx(offset, abs=0.31)


def made_rows():
    """Returns rows of five sources whose lists offer "none of these", in several words and lengths."""
    rows = []
    for number in range(260):
        labels = [f"{LABELS[i % 5]} {i}" for i in range(2 + number % 9)]
        none = ("other", "none_of_these", "out_of_scope", "something_else")[number % 4]
        right = none if number % 3 else labels[0]
        criteria = dict.fromkeys([*labels, none], "")
        rows.append(Row(f"source {number % 5}", "The parcel never came.", choice("Which?", criteria), right))
    return rows


def found_by(model, rows):
    """Returns what the none head reads of each row, and the rows' labels."""
    with torch.no_grad():
        found = [none_features(model, batch_of(row.question))[0] for row in rows]
    return found, [list(row.question["criteria"]).index(row.label) for row in rows]


def test_the_head_tells_none_of_these_from_other_options():
    model, rows = load_model().eval(), made_rows()
    found, labels = found_by(model, rows)
    assert found[0].shape == (len(rows[0].question["criteria"]), 1 + WIDTH)
    fit_none(model.none, rows, found, labels)
    question = choice("Which?", {"invoice": "", "none_of_the_above": "", "delivery": ""})
    with torch.no_grad():
        own = none_features(model, batch_of(question))[0][:, 1:]
        shares = model.none.share(own)
    assert shares[1] > 0.7 and shares[0] < 0.2 and shares[2] < 0.2
    kept = load_model()
    fit_none(kept.none, rows, found, labels, with_growth(load_model(), 0.7, 1.3).none)
    assert torch.equal(kept.none.weight, model.none.weight) and not torch.equal(kept.none.growth, model.none.growth)
    assert (round(kept.none.growth.item(), 3), round(kept.none.offset.item(), 3)) == (0.7, 1.3)


def test_too_few_rows_change_nothing():
    model, rows = load_model().eval(), made_rows()[:150]
    found, labels = found_by(model, rows)
    with pytest.raises(ValueError, match="too few held-out rows"):
        fit_none(model.none, rows, found, labels, load_model().none)
    fit_none(model.none, rows, found, labels)
    assert not model.none.weight.any() and model.none.growth.item() == model.none.offset.item() == 0


@pytest.mark.parametrize(
    ("name", "text", "means"),
    [
        ("none", "", True),
        ("NONE_OF_THESE", "", True),
        ("C", "none of these", True),
        ("something else", "the message fits none of the other options", True),
        ("outofdomain", "is off topic", True),
        ("other", "other", True),
        ("unknown", "", False),
        ("audio_volume_other", "audio volume other", False),
        ("SearchCreativeWork", "find a book, film, game or other work", False),
        ("none", "no rule is broken", False),
        ("other drivers", "", False),
    ],
)
def test_an_option_means_none_of_these_only_if_it_says_so(name, text, means):
    assert covers_the_rest(name, text) == means
