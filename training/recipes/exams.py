"""Asks exam questions: alone or beside a text about something else, where only knowledge would answer them, and beside
a passage that does."""

from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import Group
from ..data.question import Choice
from ..data.rows import Row
from .asking import Scene, asked_noul, pick, scene
from .choices import renamed, sure_choice
from .pools import Pools


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms in which exam questions are asked."""

    other_text: float = 0.2
    in_instructions: float = 0.35
    left_out: float = 0.15
    yes_or_no: float = 0.2
    right_proposed: float = 0.5


CHANCES = Chances()
TEXTS = ("passage", "text", "notes", "context", "article", "excerpt")
NOUNS = ("question", "question", "problem", "exercise", "query")
FRAMES = (
    "{}",
    "{}",
    "{}",
    "Question: {}",
    "Q: {}",
    "Answer this: {}",
    "{} Pick one.",
    "Quiz: {}",
    "{} Choose.",
    "Exam: {}",
)
ANSWERED = (
    "Pick the right answer.",
    "Which answer is right?",
    "Answer {it}.",
    "Which option answers {it}?",
    "Choose the correct option.",
    "What is the answer to {it}?",
    "Solve {it}.",
    "Select one answer.",
    "Which of these is correct?",
    "Mark the correct answer.",
    "The answer to {it} is:",
    "Answer?",
)
PROPOSED = (
    'Is "{}" the right answer?',
    'The answer is "{}".',
    'Would "{}" be marked as right?',
    'Right answer: "{}"?',
    'A student answers "{}". Is that right?',
    'It is right to answer "{}".',
    "Is this correct: {}?",
    'Should one choose "{}"?',
    '"{}" is correct.',
    "Answer: {}. Correct?",
)


def examined(rng: Random, row: Row, question: Choice, pools: Pools) -> Group:
    """Returns an exam question as a choice, and at times whether one of its options is right."""
    text, passage = row.state["question"], row.state.get("passage", "")
    if not passage and pools.texts and rng.random() < CHANCES.other_text:
        passage = rng.choice(pools.texts)
    if rng.random() < CHANCES.in_instructions:
        into = scene(rng, passage, TEXTS) if passage else Scene({"": ""}, None, "text")
        instructions, lead = pick(rng, FRAMES).format(text), f"{text} "
    else:
        into = beside(rng, text, passage) if passage else scene(rng, text, NOUNS)
        instructions, lead = words.reworded(rng, pick(rng, ANSWERED).format(it=into.it(rng))), ""
    options, right = some_of(rng, question["criteria"], str(row.label))
    into.ask(sure_choice(instructions, renamed(rng, options), list(options).index(right)))
    if rng.random() < CHANCES.yes_or_no:
        others = [name for name in options if name != right]
        named = right if rng.random() < CHANCES.right_proposed else rng.choice(others)
        proposed = lead + pick(rng, PROPOSED).format(options[named])
        into.ask(asked_noul(rng, proposed, float(named == right)))
    return into.group(rng, row.source)


def beside(rng: Random, text: str, passage: str) -> Scene:
    """Returns a question as a part of a state with a passage."""
    noun = rng.choice(NOUNS)
    into = Scene({noun: text}, noun, noun)
    into.add_part(rng, into.free(rng, TEXTS), passage)
    return into


def some_of(rng: Random, options: dict[str, str], right: str) -> tuple[dict[str, str], str]:
    """Returns the options' texts in another order under the same letters, at times without one of the wrong ones, and
    the letter of the right one."""
    texts = rng.sample(list(options.values()), len(options))
    if len(texts) > 2 and rng.random() < CHANCES.left_out:
        texts.remove(rng.choice([text for text in texts if text != options[right]]))
    shown = dict(zip(options, texts))
    return shown, next(name for name, text in shown.items() if text == options[right])
