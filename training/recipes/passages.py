"""Asks yes/no questions about a passage or about general knowledge: plainly, in the state, as the opposite, or as a
choice with an option for "not stated"."""

import re
from dataclasses import dataclass
from random import Random

from ..data.groups import Asked, Group
from ..data.question import choice
from ..data.rows import Row, State
from .asking import Scene, asked_noul, capitalized, manner, pick, questioned, scene


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms in which a question about a passage is asked."""

    plain_text: float = 0.3
    chosen: float = 0.24
    asked_twice: float = 0.16
    # Of the question whether the passage answers a question at all.
    answerable: float = 0.18
    own_question: float = 0.5
    foreign_question_chosen: float = 0.4
    can_be_answered: float = 0.5
    # Of a choice.
    not_stated_offered: float = 0.5
    shuffled: float = 0.7
    question_in_state: float = 0.45


CHANCES = Chances()
# Sources of questions about a text, and the part of the state that holds it.
PARTS = {
    "boolq_train1886": "passage",
    "condaqa": "passage",
    "strategyqa": "facts",
    "logicbench_aug": "",
    "csqa2": "",
    "creak": "",
}
NOUNS = ("passage", "passage", "text", "article", "context", "document", "paragraph", "excerpt")
ANSWERED = (
    "What is the answer to `{q}`?",
    "Answer `{q}` from `{k}`.",
    "What does `{k}` say to `{q}`?",
    "Which answer to `{q}` does `{k}` give?",
    "`{q}`",
    "Yes, no or not stated: `{q}`",
    "Read `{k}`; answer `{q}`.",
    "How does `{k}` answer `{q}`?",
)
CHOSEN = (
    "{}",
    "{}",
    "Question: {}",
    "Answer from the text: {}",
    "{} Choose one.",
    "What does the text say? {}",
    "Pick the answer: {}",
    "According to this, {}",
    "{} Say if it is not stated.",
    "Q: {}",
)
NAMES = (
    ("yes", "no", "not stated"),
    ("true", "false", "unknown"),
    ("Yes", "No", "Cannot tell"),
    ("YES", "NO", "UNCLEAR"),
    ("yes", "no", "unanswerable"),
    ("affirmative", "negative", "silent"),
    ("it is so", "it is not so", "the text does not say"),
    ("answer_yes", "answer_no", "no_answer"),
)
TEXTS = (
    ("", "", ""),
    ("", "", ""),
    ("the passage says or implies yes", "the passage says or implies no", "the passage does not settle it"),
    ("the text supports it", "the text speaks against it", "there is nothing about it"),
)
CAN = (
    "Can {q} be answered from {k}?",
    "{k} answers {q}.",
    "Does {k} hold an answer to {q}?",
    "There is enough in {k} to answer {q}.",
    "Is {q} answered by {k}?",
)
CANNOT = (
    "{k} leaves {q} open.",
    "Is {q} left unanswered by {k}?",
    "{q} cannot be answered from {k}.",
    "There is nothing in {k} that answers {q}.",
)
META = re.compile(r"`(question|passage)`")


def question_of(row: Row) -> str | None:
    """Returns the question that a row asks, or None if its instructions are about a question that is missing."""
    if isinstance(row.state, dict) and "question" in row.state:
        return str(row.state["question"])
    asked = row.question["instructions"]
    return None if META.search(asked) else asked


def answer_of(row: Row) -> float | None:
    """Returns 1 for yes, 0 for no, or None if the passage does not say it or it is not known."""
    asked = row.question["instructions"]
    if row.question["type"] == "choice":
        return {"yes": 1.0, "no": 0.0}.get(str(row.label))
    if META.search(asked) and ("answers `question`" in asked or "be answered" in asked):
        return None
    return float(bool(row.label))


def passage_of(row: Row) -> State:
    """Returns the text that a question is about."""
    part = PARTS[row.source]
    return row.state if not part or not isinstance(row.state, dict) else row.state[part]


def read(rng: Random, row: Row, others: list[Row]) -> Group:
    """Returns one or two questions about a passage; sometimes one that it does not answer, from another passage of the
    source."""
    question, answer = question_of(row) or "", float(answer_of(row) or 0)
    text = passage_of(row)
    into = scene(rng, text, NOUNS, CHANCES.plain_text) if text else Scene({"": ""}, None, "text")
    if rng.random() < CHANCES.chosen and text:
        chosen(rng, into, question, answer)
    else:
        questioned(rng, into, question, answer)
        if rng.random() < CHANCES.asked_twice:
            into.ask(asked_noul(rng, manner(rng, question), answer))
    if text and row.source != "logicbench_aug" and rng.random() < CHANCES.answerable:
        answerable(rng, into, question, others)
    return into.group(rng, row.source)


def chosen(rng: Random, into: Scene, question: str, answer: float | None) -> None:
    """Adds a choice of yes, no and, half of the time, "not stated"; `answer` is None if that is right."""
    names, texts = pick(rng, NAMES), rng.choice(TEXTS)
    target = [float(answer == 1), float(answer == 0), float(answer is None)]
    places = [0, 1, 2] if answer is None or rng.random() < CHANCES.not_stated_offered else [0, 1]
    if rng.random() < CHANCES.shuffled:
        rng.shuffle(places)
    key = "question" if "question" not in into.parts else "query"
    has_room = into.key is not None and len(into.parts) < 3 and key not in into.parts
    if has_room and rng.random() < CHANCES.question_in_state:
        into.add_part(rng, key, question)
        instructions = pick(rng, ANSWERED).format(q=key, k=into.key)
    else:
        instructions = pick(rng, CHOSEN).format(manner(rng, question))
    asked = choice(instructions, {names[i]: texts[i] for i in places})
    into.ask(Asked(asked, [target[i] for i in places]))


def answerable(rng: Random, into: Scene, question: str, others: list[Row]) -> None:
    """Asks whether the passage answers a question, which is its own or that of another passage, or asks the other's
    question as a choice with "not stated"."""
    other = rng.choice(others) if others else None
    foreign = question_of(other) if other and passage_of(other) != next(iter(into.parts.values())) else None
    if foreign is not None and rng.random() >= CHANCES.own_question:
        asked, own = foreign, False
        if rng.random() < CHANCES.foreign_question_chosen:
            chosen(rng, into, asked, None)
            return
    else:
        asked, own = question, True
    quoted = f'"{manner(rng, asked)}"'
    named = f"`{into.key}`" if into.key else rng.choice(("the text", "the passage"))
    can = rng.random() < CHANCES.can_be_answered
    wording = pick(rng, CAN if can else CANNOT).format(q=quoted, k=named)
    into.ask(asked_noul(rng, capitalized(wording), float(own == can)))
