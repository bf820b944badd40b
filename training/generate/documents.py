"""Generates long texts in which single sentences hold the answers, and questions about those sentences."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ..data.question import Choice, Label, Noul, Question, choice, noul
from . import messages


@dataclass(frozen=True)
class Chances:
    """The probabilities of what long texts hold and of their questions. Fields that end in `_below` divide one draw:
    each is the upper end of its part."""

    kinds_mixed: float = 0.7
    own_text: float = 0.4
    log_line: float = 0.5
    # Of the text's form.
    lines_below: float = 0.5
    running_text_below: float = 0.75
    list_below: float = 0.9
    first_fact_missing: float = 0.4
    # Of a question.
    asked_as_choice: float = 0.7
    absent_offered: float = 0.2
    own_value: float = 0.5


CHANCES = Chances()

PEOPLE = (
    "Anna",
    "Bilal",
    "Chen",
    "Dora",
    "Emil",
    "Fatima",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kofi",
    "Lena",
    "Mateo",
    "Nora",
    "Omar",
    "Priya",
    "Quentin",
    "Rosa",
    "Sven",
    "Tara",
)
THINGS = (
    "garage",
    "boat",
    "kitchen",
    "front door",
    "old barn",
    "library",
    "van",
    "north wing",
    "workshop",
    "guest room",
    "storage hall",
    "bridge",
    "stage",
    "lift",
    "roof",
)
EVENTS = (
    "workshop",
    "audit",
    "wedding",
    "release",
    "inspection",
    "concert",
    "board meeting",
    "training",
    "auction",
    "move",
    "interview",
    "maintenance window",
    "exam",
    "dinner",
)
PROJECTS = (
    "the migration",
    "the new website",
    "project Falcon",
    "the survey",
    "the budget plan",
    "project Delta",
    "the translation",
    "the summer campaign",
    "the merger",
    "the archive",
)


@dataclass(frozen=True)
class Kind:
    """A kind of fact: the sentences about a subject, the wordings of the question about it, and its possible values."""

    said: tuple[str, ...]
    asked: tuple[str, ...]
    claimed: str
    subjects: tuple[str, ...]
    values: tuple[str, ...]


KINDS = (
    Kind(
        ("The {s} was painted {v}.", "Please note that the {s} is {v} now.", "They made the {s} {v} last spring."),
        ("What colour is the {s}?", "Which colour has the {s}?", "Colour of the {s}"),
        "The {s} is {v}.",
        THINGS,
        ("red", "blue", "green", "yellow", "white", "black", "orange", "purple", "grey", "brown", "pink"),
    ),
    Kind(
        ("The {s} is on {v}.", "We moved the {s} to {v}.", "{v} is the day of the {s}."),
        ("On which day is the {s}?", "When is the {s}?", "Day of the {s}"),
        "The {s} is on {v}.",
        EVENTS,
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    ),
    Kind(
        ("The {s} takes place in {v}.", "The {s} will be in {v} this year."),
        ("In which month is the {s}?", "Month of the {s}?"),
        "The {s} is in {v}.",
        EVENTS,
        (
            "January",
            "February",
            "March",
            "April",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ),
    ),
    Kind(
        ("{v} is responsible for {s}.", "From now on {v} leads {s}.", "Ask {v} about {s}."),
        ("Who is responsible for {s}?", "Who leads {s}?", "Person to ask about {s}"),
        "{v} is responsible for {s}.",
        PROJECTS,
        PEOPLE,
    ),
    Kind(
        ("The ticket for the {s} costs {v} euros.", "Entry to the {s} is {v} euros."),
        ("How much is the ticket for the {s}?", "What does the {s} cost?"),
        "A ticket for the {s} costs {v} euros.",
        EVENTS,
        ("8", "12", "15", "20", "25", "30", "45", "60", "75", "90"),
    ),
    Kind(
        ("{s} speaks {v} best.", "The mother tongue of {s} is {v}."),
        ("Which language does {s} speak best?", "Language of {s}"),
        "{s} speaks {v}.",
        PEOPLE,
        ("French", "Arabic", "Hindi", "Polish", "Turkish", "Korean", "Dutch", "Greek", "Swahili", "Finnish"),
    ),
    Kind(
        ("{s} always orders {v}.", "{s} would like {v}, please."),
        ("What does {s} order?", "Which drink is for {s}?"),
        "{s} orders {v}.",
        PEOPLE,
        ("tea", "coffee", "water", "lemonade", "beer", "milk", "apple juice", "cocoa", "wine"),
    ),
    Kind(
        ("{s} comes by {v}.", "{s} takes the {v} every morning."),
        ("How does {s} come?", "Which vehicle does {s} take?"),
        "{s} comes by {v}.",
        PEOPLE,
        ("train", "bus", "bicycle", "car", "ferry", "tram", "taxi", "scooter", "plane"),
    ),
    Kind(
        ("The {s} is made of {v}.", "They built the {s} out of {v}."),
        ("What is the {s} made of?", "Material of the {s}"),
        "The {s} is made of {v}.",
        THINGS,
        ("wood", "steel", "glass", "stone", "brick", "concrete", "bamboo", "plastic", "copper"),
    ),
    Kind(
        ("{s} won the first prize in {v}.", "The medal in {v} went to {s}."),
        ("In which sport did {s} win?", "Sport of {s}"),
        "{s} won in {v}.",
        PEOPLE,
        ("tennis", "chess", "rowing", "judo", "golf", "sailing", "fencing", "archery", "boxing"),
    ),
    Kind(
        ("The password hint for {s} is {v}.", "The code word of {s} is {v}."),
        ("What is the code word of {s}?", "Which code word has {s}?"),
        "The code word of {s} is {v}.",
        PROJECTS,
        ("sunflower", "granite", "velvet", "compass", "lantern", "marble", "feather", "anchor", "pepper", "mirror"),
    ),
)
WHETHER = ("{}", "Does the text say this: {}", "True? {}", "Is it said that {}")
ABSENT = ("not mentioned", "the text does not say", "not stated", "unknown")


@dataclass(frozen=True)
class Fact:
    """A fact: one value of one subject."""

    kind: Kind
    subject: str
    value: str

    def text(self, rng: Random) -> str:
        """Returns the sentence that states the fact."""
        made = rng.choice(self.kind.said).format(s=self.subject, v=self.value)
        return made[0].upper() + made[1:]


def facts(rng: Random, count: int) -> list[Fact]:
    """Returns facts of which no two have the same kind and subject; sometimes all are of one kind."""
    kinds = rng.choices(KINDS, k=count) if rng.random() < CHANCES.kinds_mixed else [rng.choice(KINDS)] * count
    made = {}
    for kind in kinds:
        subject = rng.choice(kind.subjects)
        made[kind.asked, subject] = Fact(kind, subject, rng.choice(kind.values))
    return list(made.values())


def which(rng: Random, fact: Fact, is_there: bool) -> tuple[Choice, str]:
    """Returns a choice of values. An option for "not in the text" is added if the text does not state the fact, and
    sometimes if it does."""
    others = rng.sample([value for value in fact.kind.values if value != fact.value], rng.randint(1, 6))
    options = [fact.value, *others]
    if not is_there or rng.random() < CHANCES.absent_offered:
        options.append(rng.choice(ABSENT))
    answer = fact.value if is_there else options[-1]
    rng.shuffle(options)
    asked = rng.choice(fact.kind.asked).format(s=fact.subject)
    return choice(asked, dict.fromkeys(options, "")), answer


def whether(rng: Random, fact: Fact, is_there: bool) -> tuple[Noul, bool]:
    """Returns a yes/no question about a statement, which has another value half of the time."""
    value = fact.value if rng.random() < CHANCES.own_value else rng.choice(fact.kind.values)
    claim = fact.kind.claimed.format(s=fact.subject, v=value)
    asked = rng.choice(WHETHER).format(claim[0].upper() + claim[1:])
    return noul(asked), is_there and value == fact.value


def line(rng: Random, texts: list[str]) -> str:
    """Returns one line that has nothing to do with the facts."""
    if texts and rng.random() < CHANCES.own_text:
        return rng.choice(texts)
    return messages.noise(rng, CHANCES.log_line)


def joined(rng: Random, lines: list[str]) -> str:
    """Returns lines as a text, as a list, or as records."""
    draw = rng.random()
    if draw < CHANCES.lines_below:
        return "\n".join(lines)
    if draw < CHANCES.running_text_below:
        return " ".join(lines)
    records = [{"id": i, "text": text} for i, text in enumerate(lines)]
    return json.dumps(lines if draw < CHANCES.list_below else records, ensure_ascii=False, separators=(",", ":"))


Ask = Callable[[Random, Fact, bool], tuple[Question, Label]]


def document(rng: Random, texts: list[str], words: int) -> tuple[str, list[tuple[Question, Label]]]:
    """Returns a text of about `words` words, with questions and answers about facts that stand anywhere in it."""
    known, lines, length = facts(rng, rng.randint(1, 8)), [], 0
    while length < words:
        lines.append(line(rng, texts))
        length += len(lines[-1].split())
    missing = known[0] if rng.random() < CHANCES.first_fact_missing and len(known) > 1 else None
    for fact in known:
        if fact is not missing:
            lines.insert(rng.randint(0, len(lines)), fact.text(rng))
    asked: list[tuple[Question, Label]] = []
    for fact in known:
        ask: Ask = which if rng.random() < CHANCES.asked_as_choice else whether
        asked.append(ask(rng, fact, fact is not missing))
    return joined(rng, lines), asked
