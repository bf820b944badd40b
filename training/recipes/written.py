"""Asks the rows of `generate/written`: several questions about a state, with small changes that keep their meaning."""

from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import Asked, Group
from ..data.question import Choice, Question, score
from ..data.rows import Row, State
from ..data.wording import covers_the_rest
from .asking import KEYS, asked_noul, fields_of
from .choices import renamed, sure_choice
from .levels import mixed_levels, render_whole
from .targets import target_of


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms in which written rows are asked."""

    under_a_key: float = 0.25
    extra_field: float = 0.3
    left_out: float = 0.3
    renamed: float = 0.5
    right_left_out: float = 0.3
    upside_down: float = 0.15
    as_choice: float = 0.15


CHANCES = Chances()
# The most questions about a state in one step.
MOST = 5


def asked_as_written(rng: Random, rows: list[Row]) -> Group:
    """Returns some of the questions about one state."""
    some = rng.sample(rows, min(MOST, len(rows)))
    named = any("`" in row.question["instructions"] for row in rows)
    group = Group(rows[0].source, shown(rng, rows[0].state, named), [])
    group.asked += [asked(rng, row) for row in some]
    return group


def shown(rng: Random, state: State, named: bool) -> str:
    """Returns a state as text; a plain text at times stands under a key, unless a question names one."""
    if not isinstance(state, str):
        return render_whole(rng, state)
    if named or rng.random() >= CHANCES.under_a_key:
        return state
    return render_whole(rng, fields_of(rng, rng.choice(KEYS), state, CHANCES.extra_field))


def asked(rng: Random, row: Row) -> Asked:
    """Returns a row's question in one of its forms."""
    question: Question = row.question
    text = words.reworded(rng, question["instructions"])
    if question["type"] == "noul":
        return asked_noul(rng, text, float(bool(row.label)))
    if question["type"] == "choice":
        return asked_choice(rng, text, question, str(row.label))
    levels, target = question["criteria"], target_of(row)
    if rng.random() < CHANCES.upside_down:
        return Asked(score(text, levels[::-1]), target[::-1])
    if rng.random() < CHANCES.as_choice and len(set(levels)) == len(levels):
        return mixed_levels(rng, text, levels, int(row.label))
    return Asked(score(text, levels), target)


def fits_without(name: str, text: str) -> bool:
    """Whether an option is right when the right one is not offered; "none" alone may be an amount."""
    return covers_the_rest(name, text) and bool(text or name.lower() != "none")


def asked_choice(rng: Random, text: str, question: Choice, right: str) -> Asked:
    """Returns a choice with its options in another order, at times with fewer of them or under other names."""
    options = dict(question["criteria"])
    others = [name for name in options if name != right]
    none = next((name for name in others if fits_without(name, options[name])), None)
    if none is not None and len(others) > 1 and rng.random() < CHANCES.right_left_out:
        del options[right]
        right = none
        others = [name for name in options if name != right]
    # "None of these" is never left out: without it, a question with none of the others would have no answer.
    spare = [name for name in others if name != none]
    if len(others) > 2 and spare and rng.random() < CHANCES.left_out:
        for name in rng.sample(spare, rng.randint(1, min(len(spare), len(others) - 1))):
            del options[name]
    options = {name: options[name] for name in rng.sample(list(options), len(options))}
    place = list(options).index(right)
    if rng.random() < CHANCES.renamed:
        options = renamed(rng, options)
    return sure_choice(text, options, place)
