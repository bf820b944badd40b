"""Questions whose answers must fit together, which are added to a step so that the model learns the fit."""

from random import Random

from ..data import wording as words
from ..generate import records
from ..data.layout import Asked, Group, Tie
from ..data.wording import humanized, lower_first

YES = 1
# The longest list of options that is asked twice.
LONGEST = 12
CHECKED = ("Is it true that {}?", "{}?", "Does this hold: {}?", "Check: {}.", "{}.", "Is it so that {}?")


def equal(one: tuple[int, int], other: tuple[int, int]) -> Tie:
    """Returns the tie of two options, each as (question, option), that are equally likely."""
    return Tie((one,), (other,))


def merged(rng: Random, group: Group) -> None:
    """Asks the first choice again with two of its options merged into one, which is as likely as both together."""
    question, target = group.asked[0].question, group.asked[0].target
    names, texts = list(question["criteria"]), [text or humanized(name) for name, text in question["criteria"].items()]
    first, second = rng.sample(range(len(names)), 2)
    either = f"{texts[first]} or {texts[second]}"
    name, text = rng.choice(
        (
            (names[first], either),
            (either, ""),
            (f"{humanized(names[first])} or {humanized(names[second])}", ""),
            (f"{names[first]}_or_{names[second]}", either),
        )
    )
    rest = [i for i in range(len(names)) if i not in (first, second)]
    criteria = {name: text, **{names[i]: question["criteria"][names[i]] for i in rest}}
    if len(criteria) < len(rest) + 1:
        return
    group.asked.append(
        Asked({**question, "criteria": criteria}, [target[first] + target[second], *(target[i] for i in rest)])
    )
    here = len(group.asked) - 1
    group.ties.append(Tie(((0, first), (0, second)), ((here, 0),)))
    group.ties += [equal((0, i), (here, place)) for place, i in enumerate(rest, 1)]


def under_other_names(rng: Random, group: Group) -> None:
    """Asks the first choice again with its descriptions under names that mean nothing, or under each other's names."""
    question, target = group.asked[0].question, group.asked[0].target
    names, texts = list(question["criteria"]), [text or humanized(name) for name, text in question["criteria"].items()]
    others = words.opaque_names(rng, len(names)) if rng.random() < 0.5 else [*names[1:], names[0]]
    # A name does not matter only if all options are described.
    if not all(question["criteria"].values()):
        group.asked[0] = Asked({**question, "criteria": dict(zip(names, texts))}, target)
    if len(set(others)) == len(others):
        group.asked.append(Asked({**question, "criteria": dict(zip(others, texts))}, target))
        group.ties += [equal((0, i), (len(group.asked) - 1, i)) for i in range(len(names))]


def again(rng: Random, group: Group) -> None:
    """Asks the last question, a noul, again in other words or with a typo."""
    last = group.asked[-1]
    text = last.question["instructions"]
    as_question = f"Is it true that {lower_first(text.rstrip('.'))}?"
    other = as_question if text.endswith(".") and rng.random() < 0.5 else words.typo(rng, text)
    group.asked.append(Asked({**last.question, "instructions": other}, last.target))
    group.ties.append(equal((len(group.asked) - 2, YES), (len(group.asked) - 1, YES)))


def ruled(rng: Random, source: str) -> Group:
    """Returns a record, and questions about it that imply each other."""
    fields = records.record(rng)
    group = Group(source, words.render(rng, records.nested(rng, fields)), [])
    wording = rng.choice(CHECKED)

    def ask(text: str, holds: bool) -> tuple[int, int]:
        group.asked.append(
            Asked({"type": "noul", "instructions": wording.format(text)}, [float(not holds), float(holds)])
        )
        return len(group.asked) - 1, YES

    if rng.random() < 0.6:
        (a, a_holds), (b, b_holds) = records.condition(rng, fields), records.condition(rng, fields)
        parts = ask(a, a_holds), ask(b, b_holds)
        both, either = ask(f"{a} and {b}", a_holds and b_holds), ask(f"{a} or {b}", a_holds or b_holds)
        group.ties += [Tie((both,), (part,), at_most=True) for part in parts] + [
            Tie((part,), (either,), at_most=True) for part in parts
        ]
        return group
    key = rng.choice([key for key in fields if key in records.NUMBERS])
    low, high = sorted(records.near(rng, fields[key], records.NUMBERS[key][1]) for _ in range(2))
    over, said = rng.choice(("over", "more than", "above")), records.words(key)
    lower, higher = (ask(f"the {said} is {over} {limit}", fields[key] > limit) for limit in (low, high))
    group.ties.append(Tie((higher,), (lower,), at_most=True))
    place, _ = ask(f"the {said} is {rng.choice(('at most', 'no more than', 'up to'))} {low}", fields[key] <= low)
    group.ties.append(equal((place, YES), (lower[0], 1 - YES)))
    return group
