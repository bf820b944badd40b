"""Questions whose answers must fit together, which are added to a step so that the model learns the fit."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from ..data import wording as words
from ..data.groups import YES, Asked, Group, Tie, equal
from ..data.question import Choice, choice, noul
from ..data.wording import humanized
from ..generate import amounts, records

# The longest list of options that is asked twice.
LONGEST = 12
CHECKED = ("Is it true that {}?", "{}?", "Does this hold: {}?", "Check: {}.", "{}.", "Is it so that {}?")


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of questions that must fit."""

    opaque_names: float = 0.5
    joined_conditions: float = 0.6


CHANCES = Chances()


def described(question: Choice) -> list[str]:
    """Returns the meanings of a choice's options: their descriptions, or their names as words."""
    return [text or humanized(name) for name, text in question["criteria"].items()]


def first_choice(group: Group) -> tuple[Choice, list[float]]:
    """Returns a group's first question, which has to be a choice, and its distribution."""
    asked = group.asked[0]
    if asked.question["type"] != "choice":
        raise TypeError(f"the first question is no choice: {asked.question}")
    return asked.question, asked.target


def merged(rng: Random, group: Group) -> None:
    """Asks the first choice again with two of its options merged into one, which is as likely as both together."""
    question, target = first_choice(group)
    names, texts = list(question["criteria"]), described(question)
    first, second = rng.sample(range(len(names)), 2)
    either = f"{texts[first]} or {texts[second]}"
    both_names = f"{humanized(names[first])} or {humanized(names[second])}"
    ways = ((names[first], either), (either, ""), (both_names, ""), (f"{names[first]}_or_{names[second]}", either))
    name, text = rng.choice(ways)
    rest = [i for i in range(len(names)) if i not in (first, second)]
    criteria = {name: text, **{names[i]: question["criteria"][names[i]] for i in rest}}
    if len(criteria) < len(rest) + 1:
        return
    sums = [target[first] + target[second], *(target[i] for i in rest)]
    group.asked.append(Asked(choice(question["instructions"], criteria), sums))
    here = len(group.asked) - 1
    group.ties.append(Tie(((0, first), (0, second)), ((here, 0),)))
    group.ties += [equal((0, i), (here, place)) for place, i in enumerate(rest, 1)]


def under_other_names(rng: Random, group: Group) -> None:
    """Asks the first choice again with its descriptions under names that mean nothing, or under each other's names."""
    question, target = first_choice(group)
    names, texts = list(question["criteria"]), described(question)
    opaque = rng.random() < CHANCES.opaque_names
    others = words.opaque_names(rng, len(names)) if opaque else [*names[1:], names[0]]
    # A name does not matter only if all options are described.
    if not all(question["criteria"].values()):
        group.asked[0] = Asked(choice(question["instructions"], dict(zip(names, texts))), target)
    if len(set(others)) == len(others):
        group.asked.append(Asked(choice(question["instructions"], dict(zip(others, texts))), target))
        group.ties += [equal((0, i), (len(group.asked) - 1, i)) for i in range(len(names))]


class Asking:
    """A group while yes/no questions about its state are added to it, all in one wording."""

    def __init__(self, group: Group, wording: str) -> None:
        self.group, self.wording = group, wording

    def ask(self, condition: records.Condition) -> tuple[int, int]:
        """Asks whether a condition holds, and returns the place of "yes" as (question, option)."""
        text, holds = condition
        self.group.asked.append(Asked(noul(self.wording.format(text)), [float(not holds), float(holds)]))
        return len(self.group.asked) - 1, YES


def ruled(rng: Random, source: str) -> Group:
    """Returns a record, and questions about it that imply each other."""
    fields = records.record(rng)
    group = Group(source, words.render(rng, records.nested(rng, fields)), [])
    asking = Asking(group, rng.choice(CHECKED))
    if rng.random() < CHANCES.joined_conditions:
        ask_joined(rng, asking, fields)
    else:
        ask_thresholds(rng, asking, fields)
    return group


def ask_joined(rng: Random, asking: Asking, fields: records.Fields) -> None:
    """Asks two conditions, both of them and either of them."""
    first, second = records.condition(rng, fields), records.condition(rng, fields)
    (a, a_holds), (b, b_holds) = first, second
    parts = asking.ask(first), asking.ask(second)
    both = asking.ask((f"{a} and {b}", a_holds and b_holds))
    either = asking.ask((f"{a} or {b}", a_holds or b_holds))
    asking.group.ties += [Tie((both,), (part,), at_most=True) for part in parts]
    asking.group.ties += [Tie((part,), (either,), at_most=True) for part in parts]


def ask_thresholds(rng: Random, asking: Asking, fields: records.Fields) -> None:
    """Asks whether a number is over each of two limits, and whether it is at most the lower one."""
    key = rng.choice([key for key in fields if key in records.NUMBERS])
    value, said = records.number_of(fields, key), records.words(key)
    low, high = sorted(records.near(rng, value, records.NUMBERS[key][1]) for _ in range(2))
    over = rng.choice(("over", "more than", "above"))
    lower, higher = (asking.ask((f"the {said} is {over} {limit}", value > limit)) for limit in (low, high))
    asking.group.ties.append(Tie((higher,), (lower,), at_most=True))
    at_most = rng.choice(("at most", "no more than", "up to"))
    opposite = asking.ask((f"the {said} is {at_most} {low}", value <= low))
    asking.group.ties.append(equal(opposite, (lower[0], 1 - YES)))


def swept(rng: Random, source: str) -> Group:
    """Returns a text with a number, and questions about limits, of which each implies the next."""
    drawn = amounts.sweep(rng)
    group = Group(source, words.render(rng, drawn.state), [])
    asking = Asking(group, "{}")
    places = [asking.ask(condition) for condition in drawn.asked]
    group.ties += [Tie((place,), (implied,), at_most=True) for place, implied in pairwise(places)]
    return group
