"""Generates long texts in which single sentences hold the answers, and questions about those sentences."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from . import messages

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
    """Returns facts of which no two have the same kind and subject; sometimes several are of one kind."""
    kinds = rng.choices(KINDS, k=count) if rng.random() < 0.7 else [rng.choice(KINDS)] * count
    made = {}
    for kind in kinds:
        subject = rng.choice(kind.subjects)
        made[kind.asked, subject] = Fact(kind, subject, rng.choice(kind.values))
    return list(made.values())


def which(rng: Random, fact: Fact, is_there: bool) -> tuple[dict[str, Any], str]:
    """Returns a choice of values. An option for "not in the text" is added if the text does not state the fact, and
    sometimes if it does."""
    others = rng.sample([value for value in fact.kind.values if value != fact.value], rng.randint(1, 6))
    options = [fact.value, *others] + ([rng.choice(ABSENT)] if not is_there or rng.random() < 0.2 else [])
    answer = fact.value if is_there else options[-1]
    rng.shuffle(options)
    asked = rng.choice(fact.kind.asked).format(s=fact.subject)
    return {"type": "choice", "instructions": asked, "criteria": dict.fromkeys(options, "")}, answer


def whether(rng: Random, fact: Fact, is_there: bool) -> tuple[dict[str, Any], bool]:
    """Returns a yes/no question about a statement, which has another value half of the time."""
    value = fact.value if rng.random() < 0.5 else rng.choice(fact.kind.values)
    claim = fact.kind.claimed.format(s=fact.subject, v=value)
    asked = rng.choice(("{}", "Does the text say this: {}", "True? {}", "Is it said that {}")).format(
        claim[0].upper() + claim[1:]
    )
    return {"type": "noul", "instructions": asked}, is_there and value == fact.value


def line(rng: Random, texts: list[str]) -> str:
    """Returns one line that has nothing to do with the facts."""
    if texts and rng.random() < 0.4:
        return rng.choice(texts)
    state = (messages.log_line if rng.random() < 0.5 else messages.request)(rng)[0]
    return state if isinstance(state, str) else " ".join(str(value) for value in state.values())


def joined(rng: Random, lines: list[str]) -> str:
    """Returns lines as a text, as a list, or as records."""
    draw = rng.random()
    if draw < 0.75:
        return ("\n" if draw < 0.5 else " ").join(lines)
    return json.dumps(
        lines if draw < 0.9 else [{"id": i, "text": text} for i, text in enumerate(lines)],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def document(rng: Random, texts: list[str], words: int) -> tuple[str, list[tuple[dict[str, Any], Any]]]:
    """Returns a text of about `words` words, with questions and answers about facts that stand anywhere in it."""
    known, lines, length = facts(rng, rng.randint(1, 8)), [], 0
    while length < words:
        lines.append(line(rng, texts))
        length += len(lines[-1].split())
    missing = rng.random() < 0.4 and len(known) > 1
    for fact in known[missing:]:
        lines.insert(rng.randint(0, len(lines)), fact.text(rng))
    asked = []
    for i, fact in enumerate(known):
        is_there = i >= missing
        asked.append((which if rng.random() < 0.7 else whether)(rng, fact, is_there))
    return joined(rng, lines), asked
