"""Generates texts that state numbers or list things, and yes/no questions whether there are more of them than each of
several limits."""

from dataclasses import dataclass
from random import Random

from ..data.rows import State
from .records import Condition

# Things, a sentence that states their number, and the rest of a question about it.
FACTS = (
    ("people", "{n} people came to the workshop", "came to the workshop"),
    ("orders", "the shop sent out {n} orders on Monday", "were sent out on Monday"),
    ("tickets", "there are still {n} tickets open in the queue", "are still open"),
    ("guests", "we expect {n} guests for the dinner", "are expected for the dinner"),
    ("tests", "{n} tests failed in last night's build", "failed in last night's build"),
    ("rooms", "the hotel has {n} rooms with a balcony", "have a balcony"),
    ("students", "{n} students passed the exam", "passed the exam"),
    ("requests", "the server turned away {n} requests during the outage", "were turned away during the outage"),
    ("trees", "the town planted {n} trees along the river", "were planted along the river"),
    ("errors", "the log of the importer shows {n} errors", "are shown in the log of the importer"),
    ("boxes", "{n} boxes arrived damaged", "arrived damaged"),
    ("employees", "the new office has desks for {n} employees", "have a desk in the new office"),
    ("patients", "the ward treated {n} patients in March", "were treated in March"),
    ("subscribers", "the newsletter lost {n} subscribers this quarter", "were lost this quarter"),
    ("pages", "the report runs to {n} pages", "are in the report"),
    ("flights", "{n} flights were cancelled because of the storm", "were cancelled because of the storm"),
    ("members", "the club counts {n} members from abroad", "are from abroad"),
    ("bicycles", "the depot holds {n} bicycles for rent", "can be rented at the depot"),
    ("votes", "the motion got {n} votes in favour", "were in favour"),
    ("complaints", "support received {n} complaints about the update", "were about the update"),
)
# Sentences that are about something else, some with a number.
ASIDES = (
    "The weather was fine",
    "The next meeting is on the {n}th",
    "Nobody had expected that",
    "It took {n} minutes longer than planned",
    "The manager thanked everybody",
    "Room {n} was locked at the time",
    "Details will follow by mail",
    "The old contract ends in 20{d}",
    "We were quite happy with how it went",
    "Prices went up by {n} percent",
    "Please call extension {n} with questions",
    "Lunch was late again",
)
OVER = (
    "Is it true that more than {k} {things} {rest}?",
    "More than {k} {things} {rest}.",
    "Were there over {k} {things} that {rest}?",
    "The number of {things} that {rest} is above {k}.",
    "Going by the text, do we have to do with more than {k} {things}?",
    "Over {k} {things} {rest}, is that right?",
)
UNDER = (
    "No more than {k} {things} {rest}.",
    "Is it true that at most {k} {things} {rest}?",
    "The number of {things} that {rest} is {k} or less.",
)
# Lists: a name for one of their entries, the entries, and how to ask.
LISTS = (
    ("names", ("Ann", "Bogdan", "Chen", "Dora", "Emeka", "Fatma", "Goran", "Hina", "Ivo", "June", "Kofi", "Lena")),
    ("fruits", ("apple", "pear", "plum", "cherry", "fig", "mango", "kiwi", "peach", "grape", "melon", "lime", "date")),
    (
        "towns",
        ("Leeds", "Porto", "Graz", "Turku", "Lyon", "Bergen", "Gdansk", "Siena", "Ghent", "Cork", "Split", "Brno"),
    ),
    (
        "colours",
        ("red", "blue", "green", "pink", "grey", "brown", "white", "black", "orange", "violet", "teal", "gold"),
    ),
)
LISTED_OVER = (
    "Are there more than {k} {things} in it?",
    "It lists more than {k} {things}.",
    "Count the {things}: are there over {k}?",
    "The list has more {things} than {k}.",
    "Does it name more than {k} {things}?",
)
LISTED_UNDER = ("There are {k} {things} or fewer.", "Does it name at most {k} {things}?")


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of texts and limits."""

    listed: float = 0.3
    under: float = 0.2
    small_number: float = 0.6
    number_in_words: float = 0.3
    thousands_apart: float = 0.5
    plain_text: float = 0.7
    by_shares: float = 0.7


CHANCES = Chances()
IN_WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()
# The most limits that a text is asked about.
MOST_LIMITS = 5


@dataclass(frozen=True)
class Sweep:
    """A text and yes/no questions about a number in it, one for each limit, each with its answer; every question
    implies the next one."""

    state: State
    asked: list[Condition]


def sweep(rng: Random) -> Sweep:
    """Returns a text that states a number or lists things, and whether there are more than each of several limits."""
    return of_list(rng) if rng.random() < CHANCES.listed else of_fact(rng)


def of_fact(rng: Random) -> Sweep:
    """Returns a text that states a number, and the questions about it."""
    things, sentence, rest = rng.choice(FACTS)
    small = rng.random() < CHANCES.small_number
    number = rng.randint(2, 30) if small else round(10 ** rng.uniform(1.5, 4.5))
    written = f"{number:,}" if number > 999 and rng.random() < CHANCES.thousands_apart else str(number)
    if number < len(IN_WORDS) and rng.random() < CHANCES.number_in_words:
        written = IN_WORDS[number]
    sentences = [sentence.replace("{n}", written)]
    for aside in rng.sample(ASIDES, rng.randint(0, 3)):
        sentences.insert(rng.randint(0, len(sentences)), filled(rng, aside))
    text = " ".join(f"{one[:1].upper()}{one[1:]}." for one in sentences)
    state: State = text if rng.random() < CHANCES.plain_text else {rng.choice(("note", "report", "message")): text}
    return Sweep(state, questions(rng, number, (OVER, UNDER), {"things": things, "rest": rest}))


def filled(rng: Random, aside: str) -> str:
    """Returns a sentence with numbers in it."""
    return aside.replace("{n}", str(rng.randint(4, 20))).replace("{d}", str(rng.randint(27, 40)))


def of_list(rng: Random) -> Sweep:
    """Returns a list of things, and the questions about their number."""
    things, entries = rng.choice(LISTS)
    number = rng.randint(1, len(entries))
    chosen = rng.sample(entries, number)
    state: State = rng.choice((", ".join(chosen), "\n".join(f"- {one}" for one in chosen), {things: chosen}))
    return Sweep(state, questions(rng, number, (LISTED_OVER, LISTED_UNDER), {"things": things}))


def questions(
    rng: Random, number: int, wordings: tuple[tuple[str, ...], tuple[str, ...]], said: dict[str, str]
) -> list[Condition]:
    """Returns the questions whether a number is over each of several limits, or under each, in one wording; every
    question implies the next one."""
    under = rng.random() < CHANCES.under
    wording = rng.choice(wordings[under])
    limits = limits_around(rng, number)
    if under:
        return [(wording.format(k=limit, **said), number <= limit) for limit in limits]
    return [(wording.format(k=limit, **said), number > limit) for limit in reversed(limits)]


def limits_around(rng: Random, number: int) -> list[int]:
    """Returns a few limits around a number, from the smallest up."""
    if number > 20 and rng.random() < CHANCES.by_shares:
        near = {round(number * share) for share in (0.25, 0.5, 0.8, 0.95, 1.05, 1.25, 2, 4)} | {number}
    else:
        near = {max(0, number + step) for step in range(-4, 5)}
    return sorted(rng.sample(sorted(near), min(MOST_LIMITS, len(near))))
