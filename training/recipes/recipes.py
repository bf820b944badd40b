"""Makes the questions of one training step from labelled rows about one state."""

from collections.abc import Hashable
from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import Asked, Group, one_hot
from ..data.question import choice, label_index, option_count, with_instructions
from ..data.rows import LIKENESS, Row
from ..generate.documents import document
from ..generate.exams import EXAMS, LESSONS
from ..generate.issues import issue
from ..generate.written import WRITTEN
from . import passages, properties, sentiment, verdicts
from .choices import choices, renamed, sure_choice
from .claims import claimed
from .exams import examined
from .levels import ask_levels
from .mirrored import mirror
from .pools import Pools
from .targets import KNOWN, target_of, unsure
from .unsettled import INFERENCE, unsettled
from .written import asked_as_written

# Sources whose rows are asked as they stand, because they already vary or are a user's own.
PLAIN = frozenset({"generated", "own"})
# The most rows about one state that are asked as they stand.
MOST_PLAIN = 4
# The powers of two between which the number of words of a long text lies.
LONG_WORDS = (6.0, 11.0)


@dataclass(frozen=True)
class Chances:
    """The probabilities of the recipes of this module."""

    # A text that a search finds often settles nothing.
    unsettled: float = 0.7
    fact_unsettled: float = 0.7
    typos: float = 0.25
    # Of a text among others.
    without_names: float = 0.5
    none_offered: float = 0.25
    none_right: float = 0.5


CHANCES = Chances()


def matching(rng: Random, pools: Pools, kind: str) -> Group:
    """Asks which of several texts fits a state; this gives as many label sets as there are rows."""
    pairs = pools.pairs[kind]
    state, right = rng.choice(pairs)
    others = [rng.choice(pairs)[1] for _ in range(rng.choice((1, 2, 3, 5, 8)))]
    texts = list(dict.fromkeys([right, *others]))
    names = words.opaque_names(rng, len(texts))
    without_names = rng.random() < CHANCES.without_names
    options = [(text, "") for text in texts] if without_names else list(zip(names, texts))
    answer = options[0][0]
    if len(options) > 1 and rng.random() < CHANCES.none_offered:
        none = (rng.choice(words.NONE_NAMES), rng.choice(words.NONE_TEXTS))
        if rng.random() < CHANCES.none_right:
            options, answer = [none, *options[1:]], none[0]
        else:
            options.append(none)
    if len(options) < 2:
        options.append((rng.choice(words.NONE_NAMES), "none of these"))
    rng.shuffle(options)
    instructions = words.reworded(rng, rng.choice(words.MATCH[kind]))
    asked = sure_choice(instructions, dict(options), [name for name, _ in options].index(answer))
    return Group(kind, words.render(rng, state), [asked])


def long_document(rng: Random, pools: Pools) -> Group:
    """Returns a long text and questions about single sentences of it; short texts are as frequent as long ones."""
    state, answered = document(rng, pools.texts, round(2 ** rng.uniform(*LONG_WORDS)))
    asked = [
        Asked(question, one_hot(option_count(question), label_index(question, label))) for question, label in answered
    ]
    return Group("documents", state, asked)


def filed(rng: Random, source: str) -> Group:
    """Returns a generated issue and a question about it."""
    state, question, label = issue(rng)
    group = Group(source, words.render(rng, state), [Asked(question, target_of(Row(source, state, question, label)))])
    mirror(rng, group)
    return group


def alike(rng: Random, rows: list[Row]) -> Group:
    """Asks rows that sentence encoders answer, with their options under other names, sometimes with typos that the
    encoders have not seen."""
    state = rows[0].state
    if rng.random() < CHANCES.typos:
        for _ in range(rng.randint(1, 3)):
            state = words.typo(rng, state)
    group = Group(rows[0].source, words.render(rng, state), [])
    group.asked += [asked_alike(rng, row) for row in rows]
    return group


def asked_alike(rng: Random, row: Row) -> Asked:
    """Returns the question of a row that sentence encoders answer; raises ValueError if it has no distribution."""
    if row.soft is None:
        raise ValueError(f"{row.source}: a row without a distribution: {row.state!r}")
    question = with_instructions(row.question, words.reworded(rng, row.question["instructions"]))
    named: list[int] = []
    if question["type"] == "choice":
        named = [i for i, name in enumerate(question["criteria"]) if name not in words.NONE_NAMES]
        question = choice(question["instructions"], renamed(rng, question["criteria"]))
    # The probabilities are written with four decimals, so they do not add up to exactly 1.
    total = sum(row.soft)
    return Asked(question, [p / total for p in row.soft], whole=True, meant=named if len(named) > 1 else [])


def kind_of(row: Row) -> tuple[str, Hashable] | None:
    """Returns the recipe by which a row is asked, and its side, so that all sides come equally often; None for a row
    that no recipe can ask."""
    source, kind = row.source, row.question["type"]
    if source in PLAIN or source == LIKENESS:
        return "plain", None
    if source == WRITTEN:
        return WRITTEN, None
    if source in (EXAMS, LESSONS):
        return "exam", None
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
        if row.source == LIKENESS:
            return alike(rng, rows)
        asked = [Asked(one.question, target_of(one)) for one in rows[:MOST_PLAIN]]
        return Group(row.source, words.render(rng, row.state), asked)
    group = group_of(rng, kind, rows, pools)
    if row.source in KNOWN:
        unsure(group, KNOWN[row.source])
    mirror(rng, group)
    return group


def group_of(rng: Random, kind: str, rows: list[Row], pools: Pools) -> Group:
    """Returns the questions of one recipe."""
    row, question = rows[0], rows[0].question
    if kind == "verdict":
        return judged(rng, rows, pools)
    if kind == WRITTEN:
        return asked_as_written(rng, rows)
    if kind == "passage":
        return passages.read(rng, row, pools.questions.get(row.source, []))
    if kind == "claim":
        return claimed(rng, rows)
    if kind == "property" and (known := properties.property_of(row)):
        return properties.about(rng, row, *known)
    if kind == "feeling" and (feeling := sentiment.feeling_of(row)):
        return sentiment.felt(rng, row, feeling)
    if kind == "exam" and question["type"] == "choice":
        return examined(rng, row, question, pools)
    if kind == "choice" and question["type"] == "choice":
        return choices(rng, row, question, pools)
    if kind == "levels" and question["type"] == "score":
        return ask_levels(rng, row, question)
    raise ValueError(f"{row.source}: the recipe {kind!r} cannot ask this row")


def judged(rng: Random, rows: list[Row], pools: Pools) -> Group:
    """Returns the questions about claims; at times the first claim is moved to a text that does not settle it."""
    row = rows[0]
    is_open = row.source == INFERENCE and verdicts.label_of(row) == verdicts.OPEN
    chance = CHANCES.unsettled if is_open else CHANCES.fact_unsettled if row.source in verdicts.FACTS else 0.0
    if rng.random() < chance:
        moved = unsettled(rng, row, pools.claims)
        return verdicts.judged(rng, [moved] if moved is not row else rows)
    return verdicts.judged(rng, rows)
