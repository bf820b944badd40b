"""Asks the yes/no rows of all other kinds: their statement or question in many ways, from both sides."""

from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import Group
from ..data.rows import Row
from .asking import Scene, asked_noul, capitalized, pick, questioned, said, scene
from .passages import CAN, CANNOT
from .properties import ask_absent
from .targets import LABEL, VOTES


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of claims."""

    question_in_state: float = 0.5
    can_be_answered: float = 0.5
    strengthens: float = 0.5
    absent_property: float = 0.12


CHANCES = Chances()
NOUNS = {
    "persona": ("statement", "text", "quote"),
    "presidio": ("text", "message", "document"),
    "goemotions": ("comment", "text", "post"),
    "nlupp": ("message", "request"),
    "sgd": ("dialogue", "conversation"),
    "cfpb_other": ("complaint", "message"),
}
STRENGTHENS = (
    "`{u}` makes `{h}` more likely.",
    "Does `{u}` strengthen `{h}`?",
    "Given `{p}`, does `{u}` speak for `{h}`?",
    "`{u}` is a reason to believe `{h}`.",
    "With `{u}`, one should be surer of `{h}`.",
    "Is `{h}` likelier once `{u}` is known?",
    "`{u}` supports `{h}`.",
    "Does `{u}` raise the odds of `{h}`?",
)
WEAKENS = (
    "`{u}` makes `{h}` less likely.",
    "Does `{u}` weaken `{h}`?",
    "Given `{p}`, does `{u}` speak against `{h}`?",
    "`{u}` is a reason to doubt `{h}`.",
    "With `{u}`, one should be less sure of `{h}`.",
    "Is `{h}` less likely once `{u}` is known?",
    "`{u}` undermines `{h}`.",
    "Does `{u}` lower the odds of `{h}`?",
)
TRAITS = (
    "The person who wrote {i} shows this trait or view: {t}.",
    "{i} reveals {t}.",
    "Does {i} show {t}?",
    "Does the writer hold this view or trait: {t}?",
    "Somebody who says this shows {t}.",
    "Trait or view: {t}. Does {i} fit it?",
    "Would {t} explain why somebody says this?",
    "One can hear {t} in {i}.",
    "Is this a sign of {t}?",
    "{i} speaks for this: {t}.",
)
ENTITY = (
    "{i} contains {e}.",
    "Is there {e} in {i}?",
    "Does {i} mention {e}?",
    "A filter for {e} has to react to {i}.",
    "Would {i} have to be redacted because of {e}?",
    "One finds {e} in {i}.",
    "Personal data check: {e} is present.",
    "Does anything in {i} count as {e}?",
    "{i} gives away {e}.",
)
ENTITIES = {
    "gpe": "a city, state or country",
    "nrp": "a nationality, religion or political group",
    "person": "the name of a person",
    "organization": "the name of an organization",
    "title": "a title such as Dr or Mrs",
    "age": "somebody's age",
    "ip address": "an IP address",
    "us ssn": "a US social security number",
    "iban code": "an IBAN",
    "date time": "a date or a time",
    "email address": "an e-mail address",
    "us driver license": "a driving licence number",
}
# The keys of a state's main part, and names for a premise, a hypothesis and new information.
MAIN_KEYS = ("message", "dialogue", "sentence", "complaint", "text")
UPDATE_KEYS = (
    ("premise", "hypothesis", "update"),
    ("situation", "guess", "news"),
    ("context", "claim", "evidence"),
    ("facts", "conclusion", "new_fact"),
    ("background", "belief", "observation"),
)
ASKED_FIRST = (
    "is ",
    "are ",
    "was ",
    "were ",
    "do ",
    "does ",
    "did ",
    "can ",
    "could ",
    "will ",
    "would ",
    "should ",
    "has ",
    "have ",
    "had ",
    "may ",
    "might ",
    "if ",
    "based ",
    "must ",
)


def claimed(rng: Random, rows: list[Row]) -> Group:
    """Returns up to three claims about one state."""
    first = rows[0]
    if first.source == "qnli_dev":
        return answers(rng, first)
    if first.source == "defeasible":
        return updated(rng, first)
    into = stage(rng, first)
    for row in rows[: rng.choice((1, 2, 3))]:
        one(rng, into, row)
    ask_absent(rng, into, first.source, CHANCES.absent_property)
    if into.key or len(into.parts) == 1:
        return into.group(rng, first.source)
    return Group(first.source, words.render(rng, into.parts), into.asked, into.ties)


def stage(rng: Random, row: Row) -> Scene:
    """Returns the row's state as a scene; its own keys are kept if there are several."""
    nouns = NOUNS.get(row.source, ("text", "message", "entry"))
    if isinstance(row.state, dict) and len(row.state) > 1:
        named = next((key for key in MAIN_KEYS if key in row.state), None)
        return Scene(dict(row.state), named, named or rng.choice(nouns))
    text = next(iter(row.state.values())) if isinstance(row.state, dict) and row.state else row.state
    return scene(rng, text, nouns)


def one(rng: Random, into: Scene, row: Row) -> None:
    """Adds a row's claim."""
    text, yes = row.question["instructions"], float(bool(row.label))
    if row.soft is not None and len(row.soft) == 2:
        yes = VOTES * row.soft[1] + LABEL * yes
    if row.source == "persona":
        trait = text.split(": ")[-1].rstrip(".")
        text = pick(rng, TRAITS).format(t=trait, i=into.it(rng))
    elif row.source == "presidio":
        entity = text.removeprefix("The text contains a ").rstrip(".")
        article = "an" if entity[0] in "aeiou" else "a"
        text = pick(rng, ENTITY).format(e=ENTITIES.get(entity, f"{article} {entity}"), i=into.it(rng))
    text = capitalized(text)
    if text.endswith("?") or text.lower().startswith(ASKED_FIRST):
        questioned(rng, into, text, yes)
    else:
        said(rng, into, text, yes)


def answers(rng: Random, row: Row) -> Group:
    """Asks whether a sentence answers a question: both stand in the state, or the question stands in the
    instructions."""
    sentence, question, holds = row.state["sentence"], row.state["question"], bool(row.label)
    key = rng.choice(("sentence", "text", "passage", "snippet", "answer"))
    if rng.random() < CHANCES.question_in_state:
        parts = dict(rng.sample([("question", question), (key, sentence)], 2))
        into, named, quoted = Scene(parts, key, key), f"`{key}`", "`question`"
    else:
        into = scene(rng, sentence, ("sentence", "text", "passage"))
        named, quoted = into.it(rng), f'"{question}"'
    can = rng.random() < CHANCES.can_be_answered
    wording = pick(rng, CAN if can else CANNOT).format(q=quoted, k=named)
    into.ask(asked_noul(rng, capitalized(wording), float(holds == can)))
    return into.group(rng, row.source)


def updated(rng: Random, row: Row) -> Group:
    """Asks whether new information makes something more or less likely."""
    p, h, u = rng.choice(UPDATE_KEYS)
    parts = {p: row.state["premise"], h: row.state["hypothesis"], u: row.state["update"]}
    into = Scene({key: value for key, value in parts.items() if value}, u, u)
    for _ in range(rng.choice((1, 2))):
        more = rng.random() < CHANCES.strengthens
        wording = pick(rng, STRENGTHENS if more else WEAKENS).format(p=p, h=h, u=u)
        into.ask(asked_noul(rng, wording, float(bool(row.label) == more)))
    return into.group(rng, row.source)
