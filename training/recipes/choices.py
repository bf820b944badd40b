"""Asks rows with a label: as a choice of some of the labels, under other names, and as yes/no questions about single
labels."""

from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import YES, Asked, Group, equal, one_hot
from ..data.question import Choice, choice, noul
from ..data.rows import Row
from ..data.wording import is_none
from . import emotions
from .asking import pick
from .consistency import LONGEST, merged, under_other_names
from .pools import INTENTS, Pools
from .properties import staged
from .targets import target_of
from .wordings.scales import CHOSEN

# Label sets whose names overlap in meaning: there are no distractors from elsewhere, and no "none of these" by leaving
# the answer out.
CLOSED = frozenset({"davidson", "pubmedqa", "splunk", "csabstruct", "masc_genre", "cfpb_other", "evidence_inference"})
# Label sets of which each is made for one question, so that its labels tell nothing about another one.
OF_ONE_QUESTION = frozenset({"commonsenseqa"})
# Sources without offensive texts.
CLEAN = frozenset({"hwu64_fold1", "snips", "sgd", "multidogo", "slurp_devtest", "home_intents", "sib200_en"})
# Wordings in which a question names a field of the state.
NAMED = ("`{k}`: {q}", "Read `{k}`. {q}", "For `{k}`: {q}", "{q} Go by `{k}`.", "{q} (`{k}`)", "About `{k}`: {q}")


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of choices. Fields that end in `_below` divide one draw: each is the upper end of
    its part."""

    own_wording: float = 0.85
    names_a_field: float = 0.25
    votes_asked: float = 0.4
    moderation: float = 0.01
    about_label: float = 0.5
    elsewhere: float = 0.4
    merged_below: float = 0.1
    other_names_below: float = 0.2
    noul_criteria: float = 0.15
    # Of the options.
    options_left_out: float = 0.8
    few_options: float = 0.85
    foreign_labels: float = 0.35
    none_offered: float = 0.5
    none_right: float = 0.65
    # Of the options' names.
    unchanged_below: float = 0.3
    as_words_below: float = 0.45
    styled_below: float = 0.6
    styled_described_below: float = 0.75
    description_below: float = 0.85
    opaque_below: float = 0.97
    # Of "is it X?".
    right_label: float = 0.5
    with_instructions: float = 0.4
    about_person: float = 0.5
    denied: float = 0.4


CHANCES = Chances()
# Letters and numbers mean nothing without their descriptions, so they keep both, or only the descriptions are left, or
# they are exchanged for others: draws of these three forms.
LETTER_DRAWS = (0.0, 0.8, 0.9)
# The most options of a short list, and of a long one.
FEW, MANY = 11, 40


def sure_noul(rng: Random, instructions: str, answer: bool) -> Asked:
    """Returns a yes/no question, sometimes with criteria."""
    criteria = rng.choice(words.NOUL_SIDES) if rng.random() < CHANCES.noul_criteria else None
    return Asked(noul(instructions, criteria), one_hot(2, int(answer)))


def sure_choice(instructions: str, criteria: dict[str, str], index: int) -> Asked:
    """Returns a choice whose answer is the option at `index`."""
    return Asked(choice(instructions, criteria), one_hot(len(criteria), index))


def options_of(rng: Random, row: Row, own: dict[str, str], pools: Pools) -> tuple[dict[str, str], str]:
    """Returns some of a row's own options, shuffled, perhaps with labels from elsewhere or a "none of these", and the
    name of the right one."""
    right = str(row.label)
    others = [name for name in own if name != right]
    rng.shuffle(others)
    if len(others) > 3 and rng.random() < CHANCES.options_left_out:
        few = rng.random() < CHANCES.few_options
        others = others[: rng.randint(1, min(len(others), FEW)) if few else MANY]
    chosen = {name: own[name] for name in (right, *others)}
    if row.source not in CLOSED:
        add_foreign(rng, chosen, right, pools)
        if rng.random() < CHANCES.none_offered:
            right = add_none(rng, chosen, right)
    names = rng.sample(list(chosen), len(chosen))
    return {name: chosen[name] for name in names}, right


def add_foreign(rng: Random, chosen: dict[str, str], right: str, pools: Pools) -> None:
    """Adds at times labels of other sources that share no word with the right one."""
    if rng.random() < CHANCES.foreign_labels:
        taken = set(words.humanized(f"{right} {chosen[right]}").split())
        donor = rng.choice(pools.labels)
        for name in rng.sample(list(donor), min(len(donor), rng.choice((2, 4, 8, 20)))):
            if name not in chosen and not taken & set(words.humanized(f"{name} {donor[name]}").split()):
                chosen[name] = donor[name]


def add_none(rng: Random, chosen: dict[str, str], right: str) -> str:
    """Adds "none of these" and, two times in three, removes the right option; returns the name of the option that is
    then right."""
    name, there = rng.choice(words.NONE_NAMES), " ".join(chosen).lower()
    if name in chosen or any(word in there for word in ("none", "other", "neutral", "neither")):
        return right
    remove = len(chosen) > 1 and rng.random() < CHANCES.none_right
    if remove:
        del chosen[right]
    chosen[name] = rng.choice(words.NONE_TEXTS)
    return name if remove else right


def renamed(rng: Random, criteria: dict[str, str]) -> dict[str, str]:
    """Returns the same options under other names, in the same order: bare, described, opaque, in another style, or
    misleading."""
    draw = rng.random()
    if all(len(name) <= 2 for name in criteria) and all(criteria.values()):
        draw = rng.choice(LETTER_DRAWS)
    if draw < CHANCES.unchanged_below:
        return criteria
    own, texts = list(criteria), list(criteria.values())
    described = [text or words.humanized(name) for name, text in criteria.items()]
    bare = [""] * len(criteria)
    if draw < CHANCES.as_words_below:
        names, texts = [words.humanized(name) for name in own], bare
    elif draw < CHANCES.styled_below:
        names = [words.styled(rng, words.humanized(name)) for name in own]
    elif draw < CHANCES.styled_described_below:
        names, texts = [words.styled(rng, words.humanized(name)) for name in own], described
    elif draw < CHANCES.description_below:
        names, texts = described, bare
    elif draw < CHANCES.opaque_below:
        names, texts = words.opaque_names(rng, len(own)), described
    else:
        names, texts = rng.sample(own, len(own)), described
    return dict(zip(names, texts)) if len(set(names)) == len(names) else criteria


@dataclass
class Labelled:
    """A row with a label, its question, the instructions that are used, and the labels that the first question
    offers."""

    row: Row
    question: Choice
    instructions: str
    offered: list[str]


def choices(rng: Random, row: Row, question: Choice, pools: Pools) -> Group:
    """Asks a choice as such, in part, and as yes/no questions about single options."""
    into = staged(rng, row.state, ("message", "text", "utterance", "input"))
    group = into.group(rng, row.source)
    labelled = Labelled(row, question, instructions_of(rng, row, into.key), [])
    if row.soft is not None and rng.random() < CHANCES.votes_asked:
        group.asked.append(Asked(question, target_of(row)))
    else:
        ask_choice(rng, group, labelled, pools)
    if row.source == "goemotions":
        group.asked.extend(emotions.asked_of(rng, str(row.label)))
    if row.source in CLEAN and rng.random() < CHANCES.moderation:
        moderation(rng, group, False)
    if rng.random() < CHANCES.about_label and can_be_asked_about(row, question):
        about(rng, group, labelled)
    closed = row.source in CLOSED | OF_ONE_QUESTION
    if rng.random() < CHANCES.elsewhere and not closed:
        group.asked.append(elsewhere(rng, pools, labelled))
    return group


def instructions_of(rng: Random, row: Row, key: str | None) -> str:
    """Returns instructions for a row, which at times name the key of the state."""
    wordings = CHOSEN.get(row.source, ())
    if row.source == "goemotions":
        wordings = words.FEELING
    elif row.source in INTENTS:
        wordings = words.INTENT
    instructions = row.question["instructions"]
    if wordings and rng.random() < CHANCES.own_wording:
        instructions = pick(rng, wordings)
    if key is not None and rng.random() < CHANCES.names_a_field:
        instructions = rng.choice(NAMED).format(k=key, q=instructions)
    return instructions


def ask_choice(rng: Random, group: Group, labelled: Labelled, pools: Pools) -> None:
    """Asks the choice with some of its options, at times twice; nothing if a single option is left."""
    criteria, right = options_of(rng, labelled.row, labelled.question["criteria"], pools)
    shown = renamed(rng, criteria)
    asked = sure_choice(words.reworded(rng, labelled.instructions), shown, list(criteria).index(right))
    if len(shown) == 1:
        return
    group.asked.append(asked)
    labelled.offered = list(criteria)
    if 2 < len(shown) <= LONGEST:
        draw = rng.random()
        if draw < CHANCES.merged_below:
            merged(rng, group)
        elif draw < CHANCES.other_names_below:
            under_other_names(rng, group)


def can_be_asked_about(row: Row, question: Choice) -> bool:
    """Whether a yes/no question can be about a single label."""
    if len(question["criteria"]) <= 2 or row.source in CLOSED | OF_ONE_QUESTION:
        return False
    label = str(row.label)
    return not is_none(label, question["criteria"][label])


def about(rng: Random, group: Group, labelled: Labelled) -> None:
    """Adds "is it X?" about one option, which must agree with the choice if that shows the option, and sometimes its
    negation."""
    row, criteria = labelled.row, labelled.question["criteria"]
    others = [name for name, text in criteria.items() if name != row.label and not is_none(name, text)]
    name = str(row.label) if rng.random() < CHANCES.right_label or not others else rng.choice(others)
    text = criteria[name] or words.humanized(name)
    lead = labelled.instructions + " " if rng.random() < CHANCES.with_instructions else ""
    of_person: tuple[str, ...] = ()
    if row.source == "goemotions":
        of_person = words.ABOUT_FEELING
    elif row.source in INTENTS:
        of_person = words.ABOUT_INTENT
    if of_person and rng.random() < CHANCES.about_person:
        instructions = pick(rng, of_person).format(text)
    else:
        instructions = lead + pick(rng, words.ABOUT).format(text)
    group.asked.append(sure_noul(rng, instructions, name == row.label))
    made = len(group.asked) - 1
    if name in labelled.offered:
        group.ties.append(equal((0, labelled.offered.index(name)), (made, YES)))
    if rng.random() < CHANCES.denied:
        group.asked.append(sure_noul(rng, lead + pick(rng, words.NOT_ABOUT).format(text), name != row.label))
        group.ties.append(equal((made, YES), (made + 1, 1 - YES)))


def moderation(rng: Random, group: Group, toxic: bool) -> None:
    """Adds yes/no questions of moderation, in several wordings for the same."""
    for instructions, means_toxic in rng.sample(words.TOXIC, rng.randint(1, 2)):
        group.asked.append(sure_noul(rng, instructions, toxic == means_toxic))


def elsewhere(rng: Random, pools: Pools, labelled: Labelled) -> Asked:
    """Asks a choice among another source's labels, none of which fits."""
    own = labelled.question["criteria"]
    donor = rng.choice([labels for labels in pools.labels if not set(labels) & set(own)] or pools.labels)
    taken = {word for name, text in own.items() for word in words.humanized(f"{name} {text}").split()}
    some = rng.sample(list(donor), min(len(donor), rng.choice((3, 6, 12, 30))))
    names = [name for name in some if not taken & set(words.humanized(name).split())]
    shown = renamed(rng, {name: donor[name] for name in names}) if names else {"greeting": ""}
    none = rng.choice(words.NONE_NAMES)
    shown = {name: text for name, text in shown.items() if name != none} | {none: rng.choice(words.NONE_TEXTS)}
    order = rng.sample(list(shown), len(shown))
    instructions = words.reworded(rng, rng.choice((labelled.instructions, *words.INTENT)))
    return sure_choice(instructions, {name: shown[name] for name in order}, order.index(none))
