"""Makes the questions of one training step from labelled rows about one state."""

import re
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ..similarity import likeness
from . import emotions as moods
from . import passages
from . import properties
from . import sentiment
from . import verdicts
from ..data import wording as words
from .asking import Scene, pick
from .claims import claimed
from ..generate.documents import document
from ..data.layout import Asked, Group
from .mirrored import mirror
from .properties import staged
from ..data.rows import Row, label_index, option_count
from .wordings.scales import CHOSEN, RATED
from .consistency import LONGEST, equal, merged, under_other_names
from .unsettled import SOURCE as CLAIMS
from .unsettled import unsettled

INTENTS = frozenset(
    {
        "hwu64_fold1",
        "rasa",
        "snips",
        "sgd",
        "goemotions",
        "multidogo",
        "nlupp",
        "slurp_devtest",
        "home_intents",
        "rasa_bots",
        "nlu_eval_corpora",
    }
)
# Label sets whose names overlap in meaning: no distractors from elsewhere, no "none of these" by leaving the answer out.
CLOSED = frozenset({"davidson", "pubmedqa", "splunk", "csabstruct", "masc_genre", "cfpb_other", "evidence_inference"})
# Sources without offensive texts.
CLEAN = frozenset({"hwu64_fold1", "snips", "sgd", "multidogo", "slurp_devtest", "home_intents", "sib200_en"})
# Options that stand for everything that no other option covers.
NONE_LIKE = re.compile(
    r"\bnone\b|no option|something else|\bother\b|not listed|anything else|out.?of.?(scope|domain)|off topic", re.I
)
# Wordings in which a question names a field of the state.
NAMED = ("`{k}`: {q}", "Read `{k}`. {q}", "For `{k}`: {q}", "{q} Go by `{k}`.", "{q} (`{k}`)", "About `{k}`: {q}")
# Sources whose rows are asked as they stand, because they already vary or are a user's own.
PLAIN = frozenset({"generated", "own"})
# The powers of two between which the number of words of a long text lies.
LONG_WORDS = (6.0, 11.0)


@dataclass
class Pools:
    """Pools across sources: label sets (name to description), plain texts, pairs of a state and a text that fits it,
    claims by the words in them, and questions over passages by source."""

    labels: list[dict[str, str]]
    texts: list[str]
    pairs: dict[str, list[tuple[Any, str]]]
    claims: dict[str, list[Row]]
    questions: dict[str, list[Row]]


def one_hot(size: int, index: int) -> list[float]:
    """Returns a distribution with all mass on one option."""
    return [float(i == index) for i in range(size)]


def target_of(row: Row) -> list[float]:
    """Returns the distribution to learn: the label, mixed with the annotators' votes if there are any."""
    size, index = option_count(row.question), label_index(row.question, row.label)
    if row.soft is None or len(row.soft) != size:
        return one_hot(size, index)
    return [0.7 * vote + 0.3 * hard for vote, hard in zip(row.soft, one_hot(size, index))]


def noul(rng: Random, instructions: str, answer: bool) -> Asked:
    """Returns a yes/no question, sometimes with criteria."""
    question: dict[str, Any] = {"type": "noul", "instructions": instructions}
    if rng.random() < 0.15:
        question["criteria"] = rng.choice(words.NOUL_SIDES)
    return Asked(question, one_hot(2, int(answer)))


def choice(instructions: str, criteria: dict[str, str], index: int) -> Asked:
    """Returns a choice whose answer is the option at `index`."""
    return Asked({"type": "choice", "instructions": instructions, "criteria": criteria}, one_hot(len(criteria), index))


def options_of(rng: Random, row: Row, pools: Pools) -> tuple[dict[str, str], str]:
    """Returns some of a row's options, shuffled, perhaps with labels from elsewhere or a "none of these", and the name
    of the right one."""
    criteria, right = row.question["criteria"], row.label
    others = [name for name in criteria if name != right]
    rng.shuffle(others)
    if len(others) > 3 and rng.random() < 0.8:
        others = others[: rng.randint(1, min(len(others), 11)) if rng.random() < 0.85 else 40]
    chosen = {name: criteria[name] for name in (right, *others)}
    if row.source not in CLOSED:
        foreign(rng, chosen, right, pools)
        if rng.random() < 0.45:
            right = with_none(rng, chosen, right)
    names = rng.sample(list(chosen), len(chosen))
    return {name: chosen[name] for name in names}, right


def foreign(rng: Random, chosen: dict[str, str], right: str, pools: Pools) -> None:
    """Adds labels of other sources that share no word with the right one."""
    if rng.random() < 0.35:
        taken = set(words.humanized(f"{right} {chosen[right]}").split())
        donor = rng.choice(pools.labels)
        for name in rng.sample(list(donor), min(len(donor), rng.choice((2, 4, 8, 20)))):
            if name not in chosen and not taken & set(words.humanized(f"{name} {donor[name]}").split()):
                chosen[name] = donor[name]


def with_none(rng: Random, chosen: dict[str, str], right: str) -> str:
    """Adds "none of these" and, half of the time, removes the right option; returns the name of the option that is then
    right."""
    name = rng.choice(words.NONE_NAMES)
    if name in chosen or any(word in " ".join(chosen).lower() for word in ("none", "other", "neutral", "neither")):
        return right
    remove = len(chosen) > 1 and rng.random() < 0.5
    if remove:
        del chosen[right]
    chosen[name] = rng.choice(words.NONE_TEXTS)
    return name if remove else right


def renamed(rng: Random, criteria: dict[str, str]) -> dict[str, str]:
    """Returns the same options under other names, in the same order: bare, described, opaque, in another style, or
    misleading."""
    draw, described = rng.random(), [text or words.humanized(name) for name, text in criteria.items()]
    # Letters and numbers mean nothing without their descriptions.
    if all(len(name) <= 2 for name in criteria) and all(criteria.values()):
        draw = rng.choice((0.0, 0.8, 0.9))
    if draw < 0.3:
        return criteria
    if draw < 0.45:
        names, texts = [words.humanized(name) for name in criteria], [""] * len(criteria)
    elif draw < 0.6:
        names, texts = [words.styled(rng, words.humanized(name)) for name in criteria], list(criteria.values())
    elif draw < 0.75:
        names, texts = [words.styled(rng, words.humanized(name)) for name in criteria], described
    elif draw < 0.85:
        names, texts = described, [""] * len(criteria)
    elif draw < 0.97:
        names, texts = words.opaque_names(rng, len(criteria)), described
    else:
        names, texts = rng.sample(list(criteria), len(criteria)), described
    return dict(zip(names, texts)) if len(set(names)) == len(names) else criteria


def choices(rng: Random, row: Row, pools: Pools) -> Group:
    """Asks a choice as such, in part, and as yes/no questions about single options."""
    into = staged(rng, row.state, ("message", "text", "utterance", "input"))
    group = into.group(rng, row.source)
    instructions, places = row.question["instructions"], []
    wordings = (
        words.FEELING
        if row.source == "goemotions"
        else words.INTENT
        if row.source in INTENTS
        else CHOSEN.get(row.source, ())
    )
    if wordings and rng.random() < 0.85:
        instructions = pick(rng, wordings)
    if into.key is not None and rng.random() < 0.25:
        instructions = rng.choice(NAMED).format(k=into.key, q=instructions)
    if row.soft is not None and rng.random() < 0.4:
        group.asked.append(Asked(row.question, target_of(row)))
    else:
        criteria, right = options_of(rng, row, pools)
        index, shown = list(criteria).index(right), renamed(rng, criteria)
        group.asked.append(choice(words.reworded(rng, instructions), shown, index))
        places = list(criteria)
        if len(shown) == 1:
            group.asked.clear()
            places = []
        elif 2 < len(shown) <= LONGEST and (draw := rng.random()) < 0.2:
            (merged if draw < 0.1 else under_other_names)(rng, group)
    if row.source == "goemotions":
        group.asked.extend(moods.asked_of(rng, row.label))
    if row.source in CLEAN and rng.random() < 0.01:
        moderation(rng, group, False)
    if (
        rng.random() < 0.5
        and option_count(row.question) > 2
        and row.source not in CLOSED | {"commonsenseqa"}
        and not NONE_LIKE.search(f"{row.label} {row.question['criteria'][row.label]}")
    ):
        about(rng, group, row, instructions, places)
    if rng.random() < 0.4 and not CLOSED & {row.source} and row.source != "commonsenseqa":
        group.asked.append(elsewhere(rng, pools, instructions, row.question["criteria"]))
    return group


def about(rng: Random, group: Group, row: Row, instructions: str, places: list[str]) -> None:
    """Adds "is it X?" about one option, which must agree with the choice if that shows the option, and sometimes its
    negation."""
    criteria = row.question["criteria"]
    others = [name for name, text in criteria.items() if name != row.label and not NONE_LIKE.search(f"{name} {text}")]
    name = row.label if rng.random() < 0.5 or not others else rng.choice(others)
    text = criteria[name] or words.humanized(name)
    lead = instructions + " " if rng.random() < 0.4 else ""
    plain = words.ABOUT_FEELING if row.source == "goemotions" else words.ABOUT_INTENT if row.source in INTENTS else ()
    asked = plain if plain and rng.random() < 0.5 else words.ABOUT
    group.asked.append(noul(rng, lead * (asked is words.ABOUT) + pick(rng, asked).format(text), name == row.label))
    if name in places:
        group.ties.append(equal((0, places.index(name)), (len(group.asked) - 1, 1)))
    if rng.random() < 0.4:
        group.asked.append(noul(rng, lead + pick(rng, words.NOT_ABOUT).format(text), name != row.label))
        group.ties.append(equal((len(group.asked) - 2, 1), (len(group.asked) - 1, 0)))


def moderation(rng: Random, group: Group, toxic: bool) -> None:
    """Adds yes/no questions of moderation, in several wordings for the same."""
    for instructions, holds in rng.sample(words.TOXIC, rng.randint(1, 2)):
        group.asked.append(noul(rng, instructions, toxic == holds))


def elsewhere(rng: Random, pools: Pools, instructions: str, own: dict[str, str]) -> Asked:
    """Asks a choice among another source's labels, none of which fits."""
    donor = rng.choice([labels for labels in pools.labels if not set(labels) & set(own)] or pools.labels)
    taken = {word for name, text in own.items() for word in words.humanized(f"{name} {text}").split()}
    names = [
        name
        for name in rng.sample(list(donor), min(len(donor), rng.choice((3, 6, 12, 30))))
        if not taken & set(words.humanized(name).split())
    ]
    shown = renamed(rng, {name: donor[name] for name in names}) if names else {"greeting": ""}
    none = rng.choice(words.NONE_NAMES)
    shown = {**{name: text for name, text in shown.items() if name != none}, none: rng.choice(words.NONE_TEXTS)}
    order = rng.sample(list(shown), len(shown))
    return choice(
        words.reworded(rng, rng.choice((instructions, *words.INTENT))),
        {name: shown[name] for name in order},
        order.index(none),
    )


def matching(rng: Random, pools: Pools, kind: str) -> Group:
    """Asks which of several texts fits a state; this gives as many label sets as there are rows."""
    pairs = pools.pairs[kind]
    state, right = rng.choice(pairs)
    texts = list(dict.fromkeys([right, *(rng.choice(pairs)[1] for _ in range(rng.choice((1, 2, 3, 5, 8))))]))
    names = words.opaque_names(rng, len(texts))
    options = [(text, "") for text in texts] if rng.random() < 0.5 else list(zip(names, texts))
    answer = options[0][0]
    if len(options) > 1 and rng.random() < 0.25:
        none = (rng.choice(words.NONE_NAMES), rng.choice(words.NONE_TEXTS))
        if rng.random() < 0.5:
            options, answer = [none, *options[1:]], none[0]
        else:
            options.append(none)
    if len(options) < 2:
        options.append((rng.choice(words.NONE_NAMES), "none of these"))
    rng.shuffle(options)
    asked = choice(
        words.reworded(rng, rng.choice(words.MATCH[kind])), dict(options), [name for name, _ in options].index(answer)
    )
    return Group(kind, words.render(rng, state), [asked])


def long_document(rng: Random, pools: Pools) -> Group:
    """Returns a long text and questions about single sentences of it; short texts are as frequent as long ones."""
    state, asked = document(rng, pools.texts, round(2 ** rng.uniform(*LONG_WORDS)))
    return Group(
        "documents",
        state,
        [Asked(question, one_hot(option_count(question), label_index(question, label))) for question, label in asked],
    )


def alike(rng: Random, rows: list[Row]) -> Group:
    """Asks rows that the base model answers, with their options under other names, sometimes with typos that it has not
    seen."""
    state = rows[0].state
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 3)):
            state = words.typo(rng, state)
    group = Group(rows[0].source, words.render(rng, state), [])
    for row in rows:
        question = {**row.question, "instructions": words.reworded(rng, row.question["instructions"])}
        if question["type"] == "choice":
            question["criteria"] = renamed(rng, question["criteria"])
        # The probabilities are written with four decimals, so they do not add up to exactly 1.
        total = sum(row.soft)
        named = (
            [i for i, name in enumerate(row.question["criteria"]) if name not in words.NONE_NAMES]
            if question["type"] == "choice"
            else []
        )
        group.asked.append(
            Asked(question, [p / total for p in row.soft], whole=True, meant=named if len(named) > 1 else [])
        )
    return group


def levels(rng: Random, row: Row) -> Group:
    """Asks a score row as it is, upside down, as a choice of its levels, or as a threshold."""
    if row.source in RATED and rng.random() < 0.85:
        row = replace(row, question={**row.question, "instructions": pick(rng, RATED[row.source])})
    group = Group(
        row.source,
        render_whole(rng, row.state),
        [Asked({**row.question, "instructions": words.reworded(rng, row.question["instructions"])}, target_of(row))],
    )
    texts, index = row.question["criteria"], int(row.label)
    if rng.random() < 0.15:
        flipped = {**row.question, "criteria": texts[::-1]}
        group.asked.append(Asked(flipped, target_of(row)[::-1]))
    if rng.random() < 0.3 and len(set(texts)) == len(texts):
        order = rng.sample(range(len(texts)), len(texts))
        group.asked.append(choice(row.question["instructions"], {texts[i]: "" for i in order}, order.index(index)))
    if rng.random() < 0.3:
        level = rng.randrange(1, len(texts))
        group.asked.append(noul(rng, f"{row.question['instructions']} At least: {texts[level]}", index >= level))
    return group


def render_whole(rng: Random, state: Any) -> str:
    """Returns the text of a state that keeps its fields, which a question may name."""
    return words.render(rng, state) if isinstance(state, str) else Scene(state, "", "").text(rng)


def kind_of(row: Row) -> tuple[str, Any] | None:
    """Returns the recipe by which a row is asked, and its side, so that all sides come equally often; None for a row
    that no recipe can ask."""
    source, kind = row.source, row.question["type"]
    if source in PLAIN or source == likeness.SOURCE:
        return "plain", None
    if source in verdicts.SOURCES and kind != "score":
        label = verdicts.label_of(row)
        return ("verdict", label) if label is not None and verdicts.parts_of(row) else None
    if source in passages.PARTS:
        answer = passages.answer_of(row)
        return ("passage", answer) if answer is not None and passages.question_of(row) else None
    known = properties.property_of(row)
    if known:
        return "property", known[1] >= 0.5
    if source in sentiment.SOURCES:
        feeling = sentiment.feeling_of(row)
        if feeling:
            return "feeling", (feeling.side, max(range(5), key=lambda i: feeling.levels[i]))
        return ("levels", row.label) if kind == "score" else None
    if kind == "noul":
        return "claim", bool(row.label)
    return ("levels" if kind == "score" else "choice"), str(row.label)


def make_group(rng: Random, kind: str, rows: list[Row], pools: Pools) -> Group:
    """Returns the questions of one step about the state that `rows` share; the first row decides the kind."""
    row = rows[0]
    if kind == "plain":
        return (
            alike(rng, rows)
            if row.source == likeness.SOURCE
            else Group(
                row.source, words.render(rng, row.state), [Asked(one.question, target_of(one)) for one in rows[:4]]
            )
        )
    if kind == "verdict":
        # A text that a search finds often settles nothing.
        moved = (
            unsettled(rng, row, pools.claims)
            if row.source == CLAIMS and verdicts.label_of(row) == verdicts.OPEN and rng.random() < 0.7
            else row
        )
        group = verdicts.judged(rng, [moved] if moved is not row else rows)
    elif kind == "passage":
        group = passages.read(
            rng,
            row,
            pools.questions.get(row.source, []),
            passages.question_of(row) or "",
            float(passages.answer_of(row) or 0),
        )
    elif kind == "property":
        known = properties.property_of(row)
        group = properties.about(rng, row, *known) if known else Group(row.source, "", [])
    elif kind == "feeling":
        feeling = sentiment.feeling_of(row)
        group = sentiment.felt(rng, row, feeling) if feeling else Group(row.source, "", [])
    elif kind == "claim":
        group = claimed(rng, rows)
    else:
        group = choices(rng, row, pools) if kind == "choice" else levels(rng, row)
    mirror(rng, group)
    return group
