"""Asks questions again in a way in which the two answers must fit: as the opposite, in other words, as another type, in
part, or together with another question."""

from random import Random
from typing import Any, Callable

from ..data import wording as words
from .asking import DENYING, clause, pick, whole
from ..data.layout import Asked, Group, Tie
from .consistency import equal

YES = 1
LONGEST = 10
DENIED_QUESTION = (
    "Is the answer no? {}",
    "Should this be answered with no: {}",
    "{} Say yes if the answer is no.",
    "The opposite of what this asks is the case: {}",
    "Answer with yes if this is not so: {}",
    "Is this not the case? {}",
)
BOTH = (
    "Do both of these hold? 1) {a} 2) {b}",
    "{a} And also: {b} Are both so?",
    "Both are true: {a} {b}",
    "Is the answer yes to each of these? {a} {b}",
    "All of this holds: {a}; {b}",
)
EITHER = (
    "Does at least one of these hold? 1) {a} 2) {b}",
    "{a} Or: {b} Is one of them so?",
    "One or both are true: {a} {b}",
    "Is the answer yes to any of these? {a} {b}",
    "Something of this holds: {a}; {b}",
)
NEITHER = (
    "Does none of these hold? 1) {a} 2) {b}",
    "Both are false: {a} {b}",
    "Is the answer no to each of these? {a} {b}",
    "Neither is so: {a}; {b}",
)
NOT_BOTH = (
    "Does at least one of these fail? 1) {a} 2) {b}",
    "Not both are true: {a} {b}",
    "Is one of these false? {a} {b}",
)
FOUR = (
    ("both", "only the first", "only the second", "neither"),
    ("yes to both", "yes, then no", "no, then yes", "no to both"),
    ("both hold", "the first holds, the second does not", "the second holds, the first does not", "none holds"),
    ("1 and 2", "1 without 2", "2 without 1", "nothing of it"),
    ("A and B", "A, not B", "B, not A", "neither A nor B"),
)
WHICH = (
    "Which of these two are so? First: {a} Second: {b}",
    "1) {a} 2) {b} What holds?",
    "A: {a} B: {b} Which is the case?",
    "Take two questions. {a} {b} How are they answered?",
    "Judge both at once. The first: {a} The second: {b}",
)
ALL = ("Are all of these so? {}", "All of these hold: {}", "Is each of these the case? {}", "Without exception: {}")
TWO = (
    "Are at least two of these so? {}",
    "Two or more of these hold: {}",
    "Is more than one of these the case? {}",
    "At least two: {}",
)
ANY = (
    "Is any of these so? {}",
    "At least one of these holds: {}",
    "Is one or more of these the case? {}",
    "Some of these, if only one: {}",
)
YES_NO = (
    ("yes", "no"),
    ("Yes", "No"),
    ("true", "false"),
    ("YES", "NO"),
    ("agree", "disagree"),
    ("holds", "does not hold"),
)
YES_NO_TEXTS = (("", ""), ("", ""), ("the answer is yes", "the answer is no"), ("it is so", "it is not so"))
TWO_LEVELS = (("no", "yes"), ("false", "true"), ("not so", "so"), ("does not apply", "applies"))
IS_IT = (
    "{q} Is it this: {o}?",
    "{q} The right answer is: {o}.",
    '{q} Is "{o}" the best of the answers?',
    "{q} One should pick: {o}.",
    'Would you answer with "{o}"? {q}',
)
IS_NOT = (
    "{q} The answer is something other than: {o}.",
    '{q} Is "{o}" wrong?',
    "{q} One should not pick: {o}.",
    "{q} Is it anything but {o}?",
)
AT_LEAST = (
    "{q} At least: {o}.",
    "{q} Is it {o} or more?",
    "{q} {o} or higher?",
    '{q} Would you go as far as "{o}", or further?',
)
AT_MOST = ("{q} At most: {o}.", "{q} Is it {o} or less?", "{q} {o} or lower?", '{q} No further than "{o}"?')
MORE_WORDS = (
    "{q} Take into account all that is given.",
    "Please read carefully. {q}",
    "{q} This is a question about the text above.",
    "Here is what I would like to know: {q}",
    "{q} Use only what is written.",
    "For the record: {q}",
    "{q} Thank you!",
    "We need to know the following. {q}",
)


def question(asked: Asked) -> str:
    """Returns the instructions of a question."""
    return str(asked.question["instructions"])


def add(group: Group, kind: str, instructions: str, target: list[float], criteria: Any = None) -> int:
    """Adds a question, and returns its index."""
    made: dict[str, Any] = {"type": kind, "instructions": instructions}
    if criteria is not None:
        made["criteria"] = criteria
    group.asked.append(Asked(made, target))
    return len(group.asked) - 1


def opposite(rng: Random, group: Group, at: int) -> None:
    """Asks a yes/no question as its opposite."""
    asked = group.asked[at]
    text = question(asked)
    if text.endswith(".") and "?" not in text:
        wording = pick(rng, DENYING).replace("{S}", whole(text)).replace("{}", clause(text))
    else:
        wording = pick(rng, DENIED_QUESTION).replace("{}", text)
    place = add(group, "noul", wording, asked.target[::-1])
    group.ties.append(equal((at, YES), (place, 0)))


def reworded(rng: Random, group: Group, at: int) -> None:
    """Asks a question with more words, with a typo, or in upper or lower case."""
    asked = group.asked[at]
    text = question(asked)
    wording = pick(rng, MORE_WORDS).replace("{q}", text)
    # A key in the text has to stay as it is.
    if "`" not in text and rng.random() < 0.6:
        wording = rng.choice(
            (words.typo(rng, text), text.upper() if len(text) < 80 else text.lower(), text.rstrip("?."))
        )
    place = add(group, asked.question["type"], wording, asked.target, asked.question.get("criteria"))
    group.ties += [equal((at, i), (place, i)) for i in range(len(asked.target))]


def retyped(rng: Random, group: Group, at: int) -> None:
    """Asks a yes/no question as a choice or as two levels."""
    asked = group.asked[at]
    if asked.question.get("criteria"):
        return
    if rng.random() < 0.5:
        names, texts, order = pick(rng, YES_NO), rng.choice(YES_NO_TEXTS), rng.sample(range(2), 2)
        place = add(
            group, "choice", question(asked), [asked.target[1 - i] for i in order], {names[i]: texts[i] for i in order}
        )
        group.ties.append(equal((at, YES), (place, order.index(0))))
    else:
        place = add(group, "score", question(asked), list(asked.target), list(rng.choice(TWO_LEVELS)))
        group.ties.append(equal((at, YES), (place, 1)))


def combined(rng: Random, group: Group, first: int, second: int) -> None:
    """Asks two yes/no questions in one: "and", "or", "neither" or "not both"."""
    one, two = group.asked[first], group.asked[second]
    a, b = one.target[1], two.target[1]
    # If an answer is not sure, the dependence of the two is not known.
    if any(0.05 < value < 0.95 for value in (a, b)):
        return
    parts = {"a": whole(question(one)), "b": whole(question(two))}
    both, either = min(a, b), max(a, b)
    place = add(group, "noul", pick(rng, BOTH).format(**parts), [1 - both, both])
    group.ties += [Tie(((place, YES),), ((at, YES),), at_most=True) for at in (first, second)]
    other = add(group, "noul", pick(rng, EITHER).format(**parts), [1 - either, either])
    group.ties += [Tie(((at, YES),), ((other, YES),), at_most=True) for at in (first, second)]
    group.ties.append(Tie(((place, YES), (other, YES)), ((first, YES), (second, YES))))
    if rng.random() < 0.5:
        none = rng.random() < 0.5
        true = (1 - either) if none else (1 - both)
        third = add(group, "noul", pick(rng, NEITHER if none else NOT_BOTH).format(**parts), [1 - true, true])
        group.ties.append(equal((third, YES), (other if none else place, 0)))


def paired(rng: Random, group: Group, first: int, second: int) -> None:
    """Asks two yes/no questions as a choice of the four ways in which they can be answered."""
    a, b = (group.asked[at].target[1] for at in (first, second))
    if any(0.05 < value < 0.95 for value in (a, b)):
        return
    parts = {"a": whole(question(group.asked[first])), "b": whole(question(group.asked[second]))}
    both, neither = min(a, b), 1 - max(a, b)
    names, order = list(pick(rng, FOUR)), rng.sample(range(4), 4)
    target = [both, a - both, b - both, neither]
    place = add(
        group, "choice", pick(rng, WHICH).format(**parts), [target[i] for i in order], {names[i]: "" for i in order}
    )
    where = [order.index(i) for i in range(4)]
    group.ties += [
        Tie(((place, where[0]), (place, where[1])), ((first, YES),)),
        Tie(((place, where[0]), (place, where[2])), ((second, YES),)),
    ]


def counted(rng: Random, group: Group, places: list[int]) -> None:
    """Asks about three yes/no questions whether all hold, at least two of them, or any."""
    values = sorted(group.asked[at].target[1] for at in places)
    if any(0.05 < value < 0.95 for value in values):
        return
    listed = " ".join(f"{number}) {whole(question(group.asked[at]))}" for number, at in enumerate(places, 1))
    everything, two, some = (
        add(group, "noul", pick(rng, wordings).format(listed), [1 - value, value])
        for wordings, value in zip((ALL, TWO, ANY), values)
    )
    group.ties += [
        Tie(((everything, YES),), ((two, YES),), at_most=True),
        Tie(((two, YES),), ((some, YES),), at_most=True),
    ]
    group.ties += [Tie(((everything, YES),), ((at, YES),), at_most=True) for at in places] + [
        Tie(((at, YES),), ((some, YES),), at_most=True) for at in places
    ]


def joined(rng: Random, group: Group, at: int) -> None:
    """Asks a choice again with two of its options merged into one."""
    asked = group.asked[at]
    names, texts = list(asked.question["criteria"]), option_names(asked)
    first, second = rng.sample(range(len(names)), 2)
    rest = [i for i in range(len(names)) if i not in (first, second)]
    either = f"{texts[first]} or {texts[second]}"
    name, text = rng.choice(((f"{names[first]}_or_{names[second]}", either), (either, ""), (names[first], either)))
    criteria = {name: text, **{names[i]: asked.question["criteria"][names[i]] for i in rest}}
    if len(criteria) < len(rest) + 1:
        return
    place = add(
        group,
        "choice",
        question(asked),
        [asked.target[first] + asked.target[second], *(asked.target[i] for i in rest)],
        criteria,
    )
    group.ties += [
        Tie(((at, first), (at, second)), ((place, 0),)),
        *(equal((at, i), (place, k)) for k, i in enumerate(rest, 1)),
    ]


def indicated(rng: Random, group: Group, at: int) -> None:
    """Asks about a choice or a score whether it is one of the options, and whether it is not."""
    asked = group.asked[at]
    names = option_names(asked)
    right = max(range(len(names)), key=lambda i: asked.target[i])
    place = right if rng.random() < 0.5 else rng.randrange(len(names))
    chance = asked.target[place]
    made = add(group, "noul", pick(rng, IS_IT).format(q=question(asked), o=names[place]), [1 - chance, chance])
    group.ties.append(equal((at, place), (made, YES)))
    if rng.random() < 0.5:
        other = add(group, "noul", pick(rng, IS_NOT).format(q=question(asked), o=names[place]), [chance, 1 - chance])
        group.ties.append(equal((made, YES), (other, 0)))


def reached(rng: Random, group: Group, at: int) -> None:
    """Asks about a score whether it is at least a level or below it, and asks it again with two neighbouring levels
    merged."""
    asked = group.asked[at]
    levels, target = asked.question["criteria"], asked.target
    level = rng.randrange(1, len(levels))
    upper = sum(target[level:])
    if rng.random() < 0.5:
        made = add(group, "noul", pick(rng, AT_LEAST).format(q=question(asked), o=levels[level]), [1 - upper, upper])
        group.ties.append(Tie(tuple((at, i) for i in range(level, len(levels))), ((made, YES),)))
    else:
        made = add(group, "noul", pick(rng, AT_MOST).format(q=question(asked), o=levels[level - 1]), [upper, 1 - upper])
        group.ties.append(Tie(tuple((at, i) for i in range(level)), ((made, YES),)))
    if len(levels) > 2 and rng.random() < 0.4:
        joined = [*levels[: level - 1], f"{levels[level - 1]} or {levels[level]}", *levels[level + 1 :]]
        place = add(
            group,
            "score",
            question(asked),
            [*target[: level - 1], target[level - 1] + target[level], *target[level + 1 :]],
            joined,
        )
        group.ties.append(Tie(((at, level - 1), (at, level)), ((place, level - 1),)))


def option_names(asked: Asked) -> list[str]:
    """Returns the meanings of a choice's options or of a score's levels."""
    criteria = asked.question["criteria"]
    return (
        [text or words.humanized(name) for name, text in criteria.items()]
        if isinstance(criteria, dict)
        else list(criteria)
    )


def mirror(rng: Random, group: Group, share: float = 1.0) -> None:
    """Adds to some groups a question that must fit one that is already there."""
    if not group.asked or rng.random() > 0.5 * share or len(group.asked) > 6:
        return
    nouls = [i for i, asked in enumerate(group.asked) if asked.question["type"] == "noul"]
    lists = [
        i
        for i, asked in enumerate(group.asked)
        if asked.question["type"] == "choice" and 2 <= len(asked.target) <= LONGEST
    ]
    scores = [i for i, asked in enumerate(group.asked) if asked.question["type"] == "score"]
    ways: list[tuple[float, Callable[[], None]]] = []
    if nouls:
        at = rng.choice(nouls)
        ways += [
            (4, lambda: opposite(rng, group, at)),
            (2, lambda: reworded(rng, group, at)),
            (2, lambda: retyped(rng, group, at)),
        ]
    if len(nouls) > 1:
        ways += [
            (4, lambda: combined(rng, group, *rng.sample(nouls, 2))),
            (1.5, lambda: paired(rng, group, *rng.sample(nouls, 2))),
        ]
    if len(nouls) > 2:
        ways.append((1.5, lambda: counted(rng, group, rng.sample(nouls, 3))))
    if lists:
        listed = rng.choice(lists)
        ways += [(3, lambda: indicated(rng, group, listed)), (1, lambda: reworded(rng, group, listed))]
        if len(group.asked[listed].target) > 2:
            ways.append((1.5, lambda: joined(rng, group, listed)))
    if scores:
        scored = rng.choice(scores)
        ways += [
            (3, lambda: reached(rng, group, scored)),
            (1.5, lambda: indicated(rng, group, scored)),
            (1, lambda: reworded(rng, group, scored)),
        ]
    if ways:
        rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
