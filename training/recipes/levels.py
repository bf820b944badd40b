"""Asks rows that are rated on levels."""

from dataclasses import dataclass, replace
from random import Random

from ..data import wording as words
from ..data.groups import Asked, Group
from ..data.question import Score, score, with_instructions
from ..data.rows import Row, State
from .asking import Scene, pick
from .choices import sure_choice, sure_noul
from .targets import target_of
from .wordings.ranked import RANKED_SCALES, RANKED_WORDINGS
from .wordings.scales import RATED, SCALES, Scale


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of scores."""

    own_wording: float = 0.85
    other_scale: float = 0.6
    upside_down: float = 0.15
    as_choice: float = 0.3
    threshold: float = 0.3


CHANCES = Chances()
ALL_RATED, ALL_SCALES = RATED | RANKED_WORDINGS, SCALES | RANKED_SCALES


def ask_levels(rng: Random, row: Row, question: Score) -> Group:
    """Asks a score row on its own levels or on others, as it is, upside down, as a choice of its levels, or as a
    threshold."""
    if row.source in ALL_RATED and rng.random() < CHANCES.own_wording:
        question = score(pick(rng, ALL_RATED[row.source]), question["criteria"])
        row = replace(row, question=question)
    if row.source in ALL_SCALES and rng.random() < CHANCES.other_scale:
        row, question = on_scale(row, question, pick(rng, ALL_SCALES[row.source]))
    state = render_whole(rng, row.state)
    asked = Asked(with_instructions(question, words.reworded(rng, question["instructions"])), target_of(row))
    group = Group(row.source, state, [asked])
    instructions, texts, index = question["instructions"], question["criteria"], int(row.label)
    if rng.random() < CHANCES.upside_down:
        group.asked.append(Asked(score(instructions, texts[::-1]), target_of(row)[::-1]))
    if rng.random() < CHANCES.as_choice and len(set(texts)) == len(texts):
        group.asked.append(mixed_levels(rng, instructions, texts, index))
    if rng.random() < CHANCES.threshold:
        level = rng.randrange(1, len(texts))
        group.asked.append(sure_noul(rng, f"{instructions} At least: {texts[level]}", index >= level))
    return group


def on_scale(row: Row, question: Score, scale: Scale) -> tuple[Row, Score]:
    """Returns a row and its question with the names of a scale as levels; as they are if there are other levels."""
    if len(scale.places) != len(question["criteria"]):
        return row, question
    question = score(question["instructions"], scale.names)
    soft = row.soft and [
        sum(share for share, at in zip(row.soft, scale.places) if at == place) for place in range(len(scale.names))
    ]
    return replace(row, question=question, label=scale.places[int(row.label)], soft=soft), question


def mixed_levels(rng: Random, instructions: str, levels: list[str], index: int) -> Asked:
    """Returns a choice among levels, in any order; the one at `index` is right."""
    order = rng.sample(range(len(levels)), len(levels))
    return sure_choice(instructions, {levels[i]: "" for i in order}, order.index(index))


def render_whole(rng: Random, state: State) -> str:
    """Returns the text of a state that keeps its fields, which a question may name."""
    return Scene(state, "", "").text(rng) if isinstance(state, dict) else words.render(rng, state)
