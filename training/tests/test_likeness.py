from random import Random

import torch

from training.data.layout import option_texts
from training.data.rows import LIKENESS, Row
from training.data.wording import NONE_NAMES, TOPICS
from training.generate import wishes
from training.model.encoder import SIMILARITY
from training.model.weights import load_model
from training.recipes.mixture import Mixture
from training.similarity import eye, likeness
from training.similarity.embeddings import embedded

TEXTS = {
    "The striker scored twice in the last minutes of the match.": "football",
    "Heavy rain and strong wind are expected tomorrow.": "weather",
    "The senator hopes to win a second term in November.": "elections",
    "Simmer the onions in butter and add the rice.": "food and recipes",
}


def rows():
    """Returns texts, each with a question that tells nothing."""
    return [Row("own", {"text": text}, {"type": "noul", "instructions": "?"}, True) for text in TEXTS]


def test_the_base_model_tells_what_a_text_is_about():
    meanings, topics = embedded(list(TEXTS)), embedded(list(TOPICS))
    for meaning, topic in zip(meanings, TEXTS.values()):
        assert topic in [TOPICS[i] for i in (topics @ meaning).topk(5).indices]


def test_every_row_has_a_distribution_over_its_options_whose_greatest_is_the_label():
    made = list(likeness.likeness(rows(), 1, 12))
    assert len(made) == 12 and [row.state for row in made[::3]] == [row.state for row in made[2::3]]
    assert made == list(likeness.likeness(rows(), 1, 12))
    for row in made:
        names = [False, True] if row.question["type"] == "noul" else list(row.question["criteria"])
        assert len(row.soft) == len(names) == len(option_texts(row.question)) >= 2
        assert abs(sum(row.soft) - 1) < 1e-3 and names[row.soft.index(max(row.soft))] == row.label


def test_none_of_these_is_right_where_nothing_is_like_the_text():
    phrases, text = (
        [f"{word} {i}" for word in ("tax return", "jewellery", "chess opening") for i in range(8)],
        "ok see you there",
    )
    cosines = embedded(phrases) @ embedded([text])[0]
    compared = likeness.Compared(text, likeness.KINDS["topic"], phrases, cosines, list(range(20)))
    found = [likeness.choice_row(Random(seed), compared) for seed in range(40)]
    with_none = [row for row in found if set(row.question["criteria"]) & set(NONE_NAMES)]
    assert with_none and all(row.label in NONE_NAMES for row in with_none)


def test_people_want_something_of_every_service_and_write_so():
    phrases = wishes.phrases()
    assert len(phrases) == len(set(phrases)) > 10_000 and {"cancel order", "card declined", "where is luggage"} <= set(
        phrases
    )
    written = wishes.messages(Random(1), 100)
    assert written == wishes.messages(Random(1), 100) and len(written) > 90


def test_a_step_asks_all_that_is_known_of_a_text():
    made = list(likeness.likeness(rows(), 2, 12))
    groups = [row.group for row in Mixture(made, seed=1).pool(0, 60) if row.group.source == LIKENESS]
    assert groups and all(len(group.asked) == 3 for group in groups)
    assert all(abs(sum(asked.target) - 1) < 1e-6 for group in groups for asked in group.asked)


def test_the_similarity_term_begins_as_what_the_base_model_says():
    made = list(likeness.likeness(rows(), 1, 12))
    texts = [*eye.texts_of(made), *wishes.messages(Random(2), 400)]
    model = load_model()
    eye.fit_similarity(model, texts)
    values, meanings = eye.pooled_values(model, texts[:200]), embedded(texts[:200])
    said, meant = torch.nn.functional.normalize(model.similar_state(values), dim=-1), meanings
    apart = (said @ said.T - meant @ meant.T).abs().mean()
    assert apart < 0.05 and model.similar_state.out_features == SIMILARITY
    assert torch.equal(model.similar_state.weight, model.similar_option.weight)
