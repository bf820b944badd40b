import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from training.data import layout
from training.data.groups import Asked, Group, Tie, one_hot
from training.data.layout import encode
from training.data.question import choice, noul, option_keys, score
from training.data.rows import Row
from training.generate import amounts, comments
from training.generate.documents import ABSENT, document
from training.generate.rows import generated
from training.model.batches import collate
from training.model.weights import load_model
from training.recipes import emotions, mirrored, mixture, properties
from training.recipes.asking import Draw
from training.recipes.consistency import swept
from training.recipes.mixture import AMOUNTS, DOCUMENTS, ISSUES, Mixture
from training.recipes.targets import KNOWN, unsure
from training.recipes.unsettled import by_word, unsettled
from training.recipes.wordings.verdicts import NAMES
from training.train.loss import NEAR, WHOLE, Kept, keeping, loss_of

INTENTS = {"card_lost": "a card is lost", "transfer": "", "balance": "the balance of an account", "greeting": ""}


def sources():
    """Yields a few rows of every kind of source."""
    pair = {
        "type": "choice",
        "instructions": "How does `hypothesis` relate to `premise`?",
        "criteria": dict.fromkeys(("entailment", "neutral", "contradiction"), ""),
    }
    yield from (
        Row(
            "mnli_dev",
            {"premise": f"A man sells {i} apples.", "hypothesis": "Somebody sells fruit."},
            pair,
            "entailment",
        )
        for i in range(20)
    )
    yield from (
        Row("snli_dev", {"premise": f"A dog sleeps on {i} mats.", "hypothesis": "The dog runs."}, pair, "contradiction")
        for i in range(20)
    )
    choice = {"type": "choice", "instructions": "What does the user want?", "criteria": INTENTS}
    yield from (Row("hwu64_fold1", f"please block card number {i}", choice, "card_lost") for i in range(20))
    yield from (Row("rasa_like", f"hello number {i}", choice, "greeting") for i in range(20))
    score = {
        "type": "score",
        "instructions": "How positive is the tone?",
        "criteria": ["negative", "neutral", "positive"],
    }
    yield from (Row("goemotions", f"what a lovely day {i}", score, 2, [0.0, 0.1, 0.9]) for i in range(20))
    feeling = {
        "type": "choice",
        "instructions": "Which emotion does the writer express?",
        "criteria": dict.fromkeys(("joy", "anger", "grief"), ""),
    }
    yield from (Row("goemotions", f"my dog learned {i} tricks", feeling, "joy") for i in range(20))
    yield from (
        Row(
            "persona",
            {"statement": f"I like {i} books"},
            {"type": "noul", "instructions": "The person who wrote it likes: reading."},
            True,
        )
        for i in range(20)
    )
    for yes in (True, False):
        said = {"type": "noul", "instructions": "The message is spam."}
        yield from (
            Row("spamassassin", {"subject": f"offer {i}", "body": "buy now" if yes else "see you at lunch"}, said, yes)
            for i in range(20)
        )
        liked = {"type": "noul", "instructions": "The reviewer liked the film."}
        yield from (
            Row("cad_sentiment", {"review": f"{'A joy' if yes else 'A bore'} of {i} minutes."}, liked, yes)
            for i in range(20)
        )
        asked = {"type": "noul", "instructions": "did the train leave at nine?"}
        yield from (
            Row("boolq_train1886", {"passage": f"Train {i} left at {'nine' if yes else 'ten'}."}, asked, yes)
            for i in range(20)
        )
        stated = {"type": "noul", "instructions": "`argument` supports `claim`."}
        yield from (
            Row("perspectrum", {"claim": "Trains should be free.", "argument": f"Argument {i}."}, stated, yes)
            for i in range(20)
        )
        follows = {
            "type": "choice",
            "instructions": "Does `hypothesis` follow from `premise`?",
            "criteria": {"follows": "", "does not follow": ""},
        }
        yield from (
            Row(
                "med_help",
                {"premise": f"All {i} aliens ate.", "hypothesis": "Some ate pork."},
                follows,
                "follows" if yes else "does not follow",
            )
            for i in range(20)
        )
    levels = {
        "type": "score",
        "instructions": "Rate the sentiment of the text.",
        "criteria": ["very negative", "negative", "neutral", "positive", "very positive"],
    }
    yield from (Row("vader_rated", f"It was what it was, {i}.", levels, i % 5, [0.2] * 5) for i in range(20))
    yield from generated(5, 200)


def test_every_target_is_a_distribution_over_the_options_and_ties_hold_for_what_is_right():
    kinds = set()
    for row in Mixture(list(sources()), seed=1).pool(0, 300):
        for asked in row.group.asked:
            assert len(asked.target) == len(option_keys(asked.question)) >= 2
            assert abs(sum(asked.target) - 1) < 1e-6
        assert_ties_hold(row.group)
        kinds |= {(tie.at_most, len(tie.one)) for tie in row.group.ties}
    assert kinds >= {(False, 1), (False, 2), (True, 1)}


def assert_ties_hold(group):
    for tie in group.ties:
        one, other = (sum(group.asked[at].target[option] for at, option in side) for side in (tie.one, tie.other))
        assert one <= other + 1e-6 if tie.at_most else abs(one - other) < 1e-6


def test_limits_are_asked_from_the_one_that_implies_the_next():
    for seed in range(200):
        group = swept(Random(seed), AMOUNTS)
        yes = [asked.target[1] for asked in group.asked]
        assert len(yes) >= 2 and yes == sorted(yes) and len(group.ties) == len(yes) - 1
        assert len({asked.question["instructions"] for asked in group.asked}) == len(yes)


def test_a_stated_number_answers_its_questions():
    for seed in range(100):
        drawn = amounts.of_fact(Random(seed))
        text = drawn.state if isinstance(drawn.state, str) else next(iter(drawn.state.values()))
        wording = re.compile(r"\b(no more than|at most|or less)\b", re.I)
        for question, answer in drawn.asked:
            limit = int(re.search(r"\d+", question).group())
            stated = [int(it.replace(",", "")) for it in re.findall(r"\d[\d,]*", text)]
            stated += [amounts.IN_WORDS.index(word) for word in text.lower().split() if word in amounts.IN_WORDS[2:]]
            holds = [number <= limit if wording.search(question) else number > limit for number in stated]
            assert answer in holds


@pytest.mark.parametrize("name", ["joined", "indicated"])
def test_a_choice_that_is_asked_again_fits(name):
    for seed in range(40):
        asked = Asked(choice("Which?", {"a": "red", "b": "blue", "c": "green"}), [0.2, 0.7, 0.1])
        group = Group("x", "Is it 5 o'clock?", [asked])
        getattr(mirrored, name)(Draw(seed), group, 0)
        assert len(group.asked) > 1 and group.ties
        assert asked.kept and not any(again.kept for again in group.asked[1:])
        assert_ties_hold(group)
        for one in group.asked:
            assert len(one.target) == len(option_keys(one.question)) and abs(sum(one.target) - 1) < 1e-6


def test_a_stronger_question_implies_the_question_and_that_a_weaker_one():
    for yes in (0.0, 0.3, 1.0):
        group = Group("x", "a", [Asked(noul("Is it late?"), [1 - yes, yes])])
        mirrored.strengthened(Draw(1), group, 0)
        _, stronger, weaker = (asked.target[1] for asked in group.asked)
        assert stronger <= yes <= weaker and len(group.ties) == 2
        assert_ties_hold(group)


def test_levels_that_are_merged_have_the_probability_of_their_parts():
    lengths = set()
    for seed in range(60):
        levels = ["none", "low", "middle", "high", "top"]
        group = Group("x", "a", [Asked(score("How bad?", levels), [0.1, 0.2, 0.3, 0.3, 0.1])])
        mirrored.reached(Draw(seed), group, 0)
        assert_ties_hold(group)
        lengths |= {len(asked.target) for asked in group.asked if asked.question["type"] == "score"}
    assert lengths == {5, 4, 3}


def test_knowledge_is_learned_as_nearly_a_guess_and_what_no_longer_fits_is_left_out():
    question = choice("Which?", {"a": "", "b": "", "c": "", "d": ""})
    group = Group("x", "a", [Asked(question, one_hot(4, 1))])
    mirrored.joined(Draw(1), group, 0)
    mirrored.reworded(Draw(1), group, 0)
    ties = len(group.ties)
    unsure(group, KNOWN["creak"])
    assert group.asked[0].target == pytest.approx([0.2, 0.4, 0.2, 0.2])
    assert 0 < len(group.ties) < ties
    assert_ties_hold(group)


def test_a_claim_from_elsewhere_about_the_same_matter_is_not_settled():
    question = {
        "type": "choice",
        "instructions": "What follows?",
        "criteria": dict.fromkeys(("entailment", "neutral", "contradiction"), ""),
    }
    pairs = (
        ("The harbour of the island was closed.", "The island has a harbour."),
        ("A storm hit the island in spring.", "The harbour of the island lies north."),
        ("Taxes rose.", "People paid more."),
    )
    rows = [
        Row("mnli_dev", {"premise": premise, "hypothesis": claim}, question, "entailment") for premise, claim in pairs
    ]
    claims = by_word(rows)
    assert set(claims["mnli_dev"]) == {"island", "harbour"} and not claims["fool_me_twice"]
    moved = unsettled(Random(1), rows[0], claims)
    assert moved.label == "neutral" and moved.state == {"premise": pairs[0][0], "hypothesis": pairs[1][1]}
    # A single common word, or none, does not make a common matter.
    assert unsettled(Random(1), rows[1], claims) is rows[1] and unsettled(Random(1), rows[2], claims) is rows[2]


def test_a_claim_that_any_row_puts_beside_a_text_is_not_moved_there():
    choice = {
        "type": "choice",
        "instructions": "Check `claim` against `passage`.",
        "criteria": dict.fromkeys(("SUPPORTS", "NOT_ENOUGH_INFO", "REFUTES"), ""),
    }
    claim_that = {"type": "noul", "instructions": "`passage` disproves `claim`."}
    text, elsewhere = "The singer recorded the album in Bristol.", "The album sold well."
    known, settling, open_claim = (f"The singer recorded {it}." for it in ("in Bristol", "in London", "two operas"))
    rows = [
        Row("fool_me_twice", {"claim": known, "passage": text}, choice, "SUPPORTS"),
        Row("fool_me_twice", {"claim": settling, "passage": text}, claim_that, True),
        Row("fool_me_twice", {"claim": settling, "passage": elsewhere}, choice, "SUPPORTS"),
        Row("fool_me_twice", {"claim": open_claim, "passage": elsewhere}, choice, "SUPPORTS"),
    ]
    rows += [
        Row("fool_me_twice", {"claim": f"Stone number {i}.", "passage": "-"}, choice, "REFUTES") for i in range(400)
    ]
    claims = by_word(rows)
    for seed in range(20):
        moved = unsettled(Random(seed), rows[0], claims)
        assert moved.label == "neutral" and moved.state == {"claim": open_claim, "passage": text}


def test_sources_that_check_facts_leave_claims_open_as_often_as_others_do():
    question = {
        "type": "choice",
        "instructions": "Check `claim` against `passage`.",
        "criteria": dict.fromkeys(("SUPPORTS", "NOT_ENOUGH_INFO", "REFUTES"), ""),
    }
    rows = [
        Row(
            "fool_me_twice",
            {"claim": f"{place} is near {river}, {far}.", "passage": f"{place} lies at {river}, {far}."},
            question,
            label,
        )
        for place, river in ((letter * 6, letter * 7) for letter in "abcdefgh")
        for far, label in (("too", "SUPPORTS"), ("not", "REFUTES"))
    ]
    mixture, rng, is_open = Mixture(rows, seed=1), Draw(1), []
    mixture.names, mixture.weights = ["fool_me_twice:verdict"], [1.0]
    open_names = {frozenset(names): names[1] for names in NAMES}
    for _ in range(600):
        for asked in mixture.draw(rng)[0].asked:
            options = option_keys(asked.question)
            if name := open_names.get(frozenset(options)):
                is_open.append(options[asked.target.index(max(asked.target))] == name)
    assert len(is_open) > 200 and 0.4 < np.mean(is_open) < 0.9


def test_an_emotion_tells_the_sentiment():
    joy = {"positive", "good", "happy", "POSITIVE", "favourable"}
    signs = dict(emotions.HOLDS)
    found = {"sentiment": 0, "yes": 0, "levels": 0}
    for row in Mixture(list(sources()), seed=4).pool(0, 1500):
        for question, target in (
            (asked.question, asked.target) for asked in row.group.asked if row.group.source == "goemotions"
        ):
            top = option_keys(question)[target.index(max(target))]
            if question["instructions"] in emotions.SENTIMENT:
                assert top in joy
                found["sentiment"] += 1
            if question["type"] == "noul" and (sign := signs.get(question["instructions"])):
                assert target[1] == (sign == 1)
                found["yes"] += 1
            if question["instructions"] in emotions.HOW_POSITIVE and "my dog" in row.group.state:
                assert target == sorted(target)
                found["levels"] += 1
    assert min(found.values()) > 0, found


def test_a_long_text_says_what_its_questions_ask_for():
    rng = Random(3)
    for words in (50, 400, 2000) * 20:
        state, asked = document(rng, ["nothing of interest"], words)
        assert len(state) > 3 * words
        for question, answer in asked:
            if question["type"] == "choice":
                assert answer in question["criteria"]
                assert (answer in state) or answer in ABSENT


def test_long_texts_are_read_to_their_end():
    rows = [row for row in Mixture(list(sources()), seed=2).pool(0, 1200) if row.group.source == DOCUMENTS]
    assert len(rows) > 1
    for row in rows:
        assert sum(part > 0 for part in row.part) == sum(map(len, layout.chunks(row.group.state, layout.STATE_MAX)))


def test_issues_of_projects_are_drawn_and_asked_about():
    rows = [row for row in Mixture(list(sources()), seed=2).pool(0, 400) if row.group.source == ISSUES]
    assert len(rows) > 1 and all(row.group.asked for row in rows)


def test_a_pool_follows_from_seed_and_place():
    rows = list(sources())
    first, again, other = (Mixture(rows, seed).pool(3, 40) for seed in (1, 1, 2))
    assert [row.ids for row in first] == [row.ids for row in again] != [row.ids for row in other]


def test_answers_do_not_depend_on_neighbours_padding_or_the_other_questions():
    torch.manual_seed(0)
    model = load_model().eval()
    asked = [
        Asked({"type": "noul", "instructions": "Is it late?"}, [0.0, 1.0]),
        Asked(
            {"type": "choice", "instructions": "Which one?", "criteria": {"a": "first", "b": "second", "c": ""}},
            [1.0, 0.0, 0.0],
        ),
    ]
    long, empty = "The train left at nine. " * 60, ""
    together = collate([encode(Group("x", state, asked)) for state in (long, "short", empty)])
    alone = [collate([encode(Group("x", state, [one]))]) for state in (long, "short", empty) for one in asked]
    with torch.no_grad():
        packed, single = model(together), [model(batch)[0] for batch in alone]
    for row, expected in zip(packed, single):
        assert torch.allclose(row[: len(expected)], expected, atol=1e-4)


def test_a_long_state_is_read_in_chunks_and_special_tokens_in_a_text_are_text():
    parts = layout.chunks("word " * 600, 10_000)
    assert [len(part) for part in parts] == [256, 256, 600 - 508 + 2]
    assert layout.MASK not in layout.tokens("a literal [MASK] here")


def test_a_tie_costs_what_it_is_apart():
    noul = {"type": "noul", "instructions": "Is it late?"}
    likely, unlikely = torch.tensor([0.2, 0.8]).log(), torch.tensor([0.7, 0.3]).log()
    for tie, apart in (
        (Tie(((0, 1),), ((1, 1),)), 0.5),
        (Tie(((0, 1),), ((1, 0), (1, 1))), 0.2),
        (Tie(((0, 1),), ((1, 1),), at_most=True), 0.5),
        (Tie(((1, 1),), ((0, 1),), at_most=True), 0.0),
    ):
        # The tied group comes behind a group without ties, whose question is the first.
        rows = [
            encode(Group("x", "a", [Asked(noul, [0.0, 1.0])])),
            encode(Group("x", "a", [Asked(noul, [0.0, 1.0])] * 2, [tie])),
        ]
        batch, logits = collate(rows), torch.stack([unlikely, likely, unlikely])
        free, tied = (loss_of(logits, batch, weight).item() for weight in (0.0, 3.0))
        assert abs(tied - free - (apart - NEAR / 2 if apart > NEAR else 0)) < 1e-6


def test_an_earlier_models_answers_are_a_part_of_what_is_learned_where_they_may_be_kept():
    noul = {"type": "noul", "instructions": "Is it late?"}
    yes, nothing = [0.0, 1.0], [0.0, 0.0]
    asked = [Asked(noul, yes), Asked(noul, yes, kept=False), Asked(noul, yes, whole=True)]
    asked += [Asked(noul, nothing), Asked(noul, nothing, kept=False)]
    batch = collate([encode(Group("x", "a", asked))])

    def learned(share, corrected=frozenset()):
        kept = Kept(lambda _: torch.tensor([[0.8, 0.2]] * 5).log(), share, frozenset(corrected))
        return keeping(kept, batch, bf16=False).target

    assert torch.allclose(learned(0.5), torch.tensor([[0.4, 0.6], yes, yes, [0.8, 0.2], nothing]))
    # With a source that is corrected, the answers to all others are kept.
    assert torch.equal(learned(1.0, {"x"}), torch.tensor([yes, yes, yes, nothing, nothing]))
    answers = [[0.8, 0.2]] * 2
    assert torch.allclose(learned(1.0, {"y"}), torch.tensor([*answers, yes, *answers]))


def test_sources_that_are_corrected_are_drawn_more_often():
    one, other = Mixture(list(sources()), seed=6), Mixture(list(sources()), seed=6)
    named = [name.removeprefix("match:").partition(":")[0] for name in one.names]
    assert other.multiply("series_*", 3) == {name for name in named if name.startswith("series_")}
    assert other.multiply("comments", 2) == {"comments"} and not other.multiply("nothing", 2)
    for name, before, after in zip(named, one.weights, other.weights):
        assert after == before * (3 if name.startswith("series_") else 2 if name == "comments" else 1)


def test_only_harmless_comments_have_the_source_that_can_be_corrected():
    for seed in map(str, range(100)):
        kind, _ = properties.commented(Draw(seed))
        is_harmless = kind == comments.NONE
        assert properties.moderated(Draw(seed), "comments").source == (
            "comments" if is_harmless else properties.ATTACKS
        )


def test_earlier_answers_to_scores_and_limits_are_not_kept():
    for row in Mixture(list(sources()), seed=6).pool(0, 400):
        for asked in row.group.asked:
            if asked.question["type"] == "score" or row.group.source == AMOUNTS:
                assert not asked.kept
    kept = [asked.kept for row in Mixture(list(sources()), seed=6).pool(0, 400) for asked in row.group.asked]
    assert 0.3 < np.mean(kept) < 0.95


def test_a_whole_distribution_is_learned_to_its_smallest_probability():
    question = {"type": "choice", "instructions": "Which?", "criteria": {"a": "", "b": "", "c": ""}}
    target = torch.tensor([0.9, 0.09, 0.01])
    losses = []
    for logits in (target.log() + 3.0, torch.tensor([0.9, 0.01, 0.09]).log()):
        batch = collate([encode(Group("x", "a", [Asked(question, target.tolist(), whole)])) for whole in (True, False)])
        losses.append(
            loss_of(torch.stack([logits, logits]), batch, 0.0).item() + (target * F.log_softmax(logits, 0)).sum().item()
        )
    gap = np.log([0.9, 0.01, 0.09]) - np.log([0.9, 0.09, 0.01])
    assert abs(losses[0]) < 1e-6 and abs(losses[1] - WHOLE * gap.var() / 2) < 1e-5


def test_documents_that_are_too_long_are_left_out_and_not_cut(monkeypatch):
    monkeypatch.setitem(mixture.LONGEST, DOCUMENTS, 700)
    monkeypatch.setitem(mixture.MADE, DOCUMENTS, replace(mixture.MADE[DOCUMENTS], weight=1000))
    rows = [row for row in Mixture(list(sources()), seed=2).pool(0, 40) if row.group.source == DOCUMENTS]
    lengths = [sum(part > 0 for part in row.part) for row in rows]
    assert max(lengths) > 512
    for row, length in zip(rows, lengths):
        assert length == sum(map(len, layout.chunks(row.group.state, layout.STATE_MAX)))


def test_generated_and_written_rows_have_at_most_a_third_of_the_groups():
    ours = re.compile(r"generated$|written:|exams:|lessons:|services:|series_")
    made = sum(one.weight for one in mixture.MADE.values())
    # Rows of a user's own are in no mixture with those of other sources.
    weights = {name: weight for name, weight in mixture.WEIGHTS.items() if name != "own"}
    total = sum(weights.values()) + sum(mixture.MATCHING.values()) + made
    assert sum(weight for name, weight in weights.items() if ours.match(name)) + made <= total / 3
