"""Asks questions again in a way in which the two answers must fit: as the opposite, in other words, as another type, in
part, or together with another question."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import YES, Asked, Group, Tie, equal
from ..data.question import Choice, Question, Score, choice, noul, score, with_instructions
from .asking import DENYING, filled, pick, whole


@dataclass(frozen=True)
class Chances:
    """The probabilities of the ways in which a question is asked again."""

    mirrored: float = 0.4
    changed_letters: float = 0.6
    retyped_as_choice: float = 0.5
    # Of two questions in one.
    denied_pair: float = 0.5
    neither: float = 0.5
    # Of a choice or a score.
    right_option: float = 0.5
    denied_option: float = 0.5
    at_least: float = 0.5
    merged_levels: float = 0.4
    all_levels_merged: float = 0.5


@dataclass(frozen=True)
class Weights:
    """The weights with which one of the possible ways is drawn."""

    opposite: float = 4
    noul_reworded: float = 2
    retyped: float = 2
    combined: float = 4
    paired: float = 1.5
    counted: float = 1.5
    strengthened: float = 3
    option_indicated: float = 3
    choice_reworded: float = 1
    joined: float = 2
    level_reached: float = 3
    level_indicated: float = 1.5
    score_reworded: float = 1


CHANCES, WEIGHTS = Chances(), Weights()
# The longest list of options that is asked again, and the most questions of a group to which one is added.
LONGEST, MOST_ASKED = 10, 6
# An answer whose probability is further from 0 and 1 is not sure.
SURE = 0.05
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
# Stronger and weaker forms of a question. What is so need not be beyond doubt, and what is not so may be possible: a
# stronger form keeps this share of the probability of yes, a weaker one of that of no.
STRONGER = (
    "Is it certain that the answer to this is yes? {q}",
    "Beyond any doubt: {q}",
    "{q} Say yes only if this is stated in so many words.",
    "Is this said outright? {q}",
    "Can one be sure that the answer is yes? {q}",
    "{q} Without the slightest doubt?",
    "It is proven that this is to be answered with yes: {q}",
)
WEAKER = (
    "Could this be so? {q}",
    "Is it conceivable that the answer is yes? {q}",
    "{q} Say yes if it cannot be ruled out.",
    "Is there any chance of a yes here? {q}",
    "Does this leave room for a yes? {q}",
    "{q} Perhaps, at least?",
    "A yes to this is not out of the question: {q}",
)
CARRIED = 0.85
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


def instructions_of(asked: Asked) -> str:
    """Returns the instructions of a question."""
    return asked.question["instructions"]


def add(group: Group, question: Question, target: list[float]) -> int:
    """Adds a question, and returns its index."""
    # An earlier model's answer to this question need not fit its answer to the first.
    group.asked.append(Asked(question, target, kept=False))
    return len(group.asked) - 1


def add_noul(group: Group, instructions: str, yes: float) -> int:
    """Adds a yes/no question, and returns its index; `yes` is the probability that yes is right."""
    return add(group, noul(instructions), [1 - yes, yes])


def opposite(rng: Random, group: Group, at: int) -> None:
    """Asks a yes/no question as its opposite."""
    asked = group.asked[at]
    text = instructions_of(asked)
    if text.endswith(".") and "?" not in text:
        wording = filled(pick(rng, DENYING), text)
    else:
        wording = pick(rng, DENIED_QUESTION).replace("{}", text)
    place = add(group, noul(wording), asked.target[::-1])
    group.ties.append(equal((at, YES), (place, 0)))


def reworded(rng: Random, group: Group, at: int) -> None:
    """Asks a question with more words, with a typo, or in upper or lower case."""
    asked = group.asked[at]
    text = instructions_of(asked)
    wording = pick(rng, MORE_WORDS).replace("{q}", text)
    # A key in the text has to stay as it is.
    if "`" not in text and rng.random() < CHANCES.changed_letters:
        in_other_case = text.upper() if len(text) < 80 else text.lower()
        wording = rng.choice((words.typo(rng, text), in_other_case, text.rstrip("?.")))
    place = add(group, with_instructions(asked.question, wording), asked.target)
    group.ties += [equal((at, i), (place, i)) for i in range(len(asked.target))]


def retyped(rng: Random, group: Group, at: int) -> None:
    """Asks a yes/no question as a choice or as two levels."""
    asked = group.asked[at]
    text = instructions_of(asked)
    if asked.question.get("criteria"):
        return
    if rng.random() < CHANCES.retyped_as_choice:
        names, texts, order = pick(rng, YES_NO), rng.choice(YES_NO_TEXTS), rng.sample(range(2), 2)
        target = [asked.target[1 - i] for i in order]
        place = add(group, choice(text, {names[i]: texts[i] for i in order}), target)
        group.ties.append(equal((at, YES), (place, order.index(0))))
    else:
        place = add(group, score(text, rng.choice(TWO_LEVELS)), list(asked.target))
        group.ties.append(equal((at, YES), (place, 1)))


def sure(values: list[float]) -> bool:
    """Whether all answers are sure; if one is not, the dependence of several is not known."""
    return not any(SURE < value < 1 - SURE for value in values)


def combined(rng: Random, group: Group, first: int, second: int) -> None:
    """Asks two yes/no questions in one: "and", "or", "neither" or "not both"."""
    one, two = group.asked[first], group.asked[second]
    a, b = one.target[YES], two.target[YES]
    if not sure([a, b]):
        return
    parts = {"a": whole(instructions_of(one)), "b": whole(instructions_of(two))}
    both, either = min(a, b), max(a, b)
    place = add_noul(group, pick(rng, BOTH).format(**parts), both)
    group.ties += [Tie(((place, YES),), ((at, YES),), at_most=True) for at in (first, second)]
    other = add_noul(group, pick(rng, EITHER).format(**parts), either)
    group.ties += [Tie(((at, YES),), ((other, YES),), at_most=True) for at in (first, second)]
    group.ties.append(Tie(((place, YES), (other, YES)), ((first, YES), (second, YES))))
    if rng.random() < CHANCES.denied_pair:
        neither = rng.random() < CHANCES.neither
        wording = pick(rng, NEITHER if neither else NOT_BOTH).format(**parts)
        third = add_noul(group, wording, 1 - either if neither else 1 - both)
        group.ties.append(equal((third, YES), (other if neither else place, 0)))


def paired(rng: Random, group: Group, first: int, second: int) -> None:
    """Asks two yes/no questions as a choice of the four ways in which they can be answered."""
    a, b = (group.asked[at].target[YES] for at in (first, second))
    if not sure([a, b]):
        return
    parts = {"a": whole(instructions_of(group.asked[first])), "b": whole(instructions_of(group.asked[second]))}
    both, neither = min(a, b), 1 - max(a, b)
    names, order = pick(rng, FOUR), rng.sample(range(4), 4)
    target = [both, a - both, b - both, neither]
    asked = choice(pick(rng, WHICH).format(**parts), {names[i]: "" for i in order})
    place = add(group, asked, [target[i] for i in order])
    in_both, only_first, only_second, _ = ((place, order.index(i)) for i in range(4))
    group.ties.append(Tie((in_both, only_first), ((first, YES),)))
    group.ties.append(Tie((in_both, only_second), ((second, YES),)))


def counted(rng: Random, group: Group, places: list[int]) -> None:
    """Asks about three yes/no questions whether all hold, at least two of them, or any."""
    values = sorted(group.asked[at].target[YES] for at in places)
    if not sure(values):
        return
    numbered = enumerate(places, 1)
    listed = " ".join(f"{number}) {whole(instructions_of(group.asked[at]))}" for number, at in numbered)
    everything, two, some = (
        add_noul(group, pick(rng, wordings).format(listed), value) for wordings, value in zip((ALL, TWO, ANY), values)
    )
    group.ties.append(Tie(((everything, YES),), ((two, YES),), at_most=True))
    group.ties.append(Tie(((two, YES),), ((some, YES),), at_most=True))
    group.ties += [Tie(((everything, YES),), ((at, YES),), at_most=True) for at in places]
    group.ties += [Tie(((at, YES),), ((some, YES),), at_most=True) for at in places]


def strengthened(rng: Random, group: Group, at: int) -> None:
    """Asks a yes/no question in a stronger and in a weaker form; the stronger one implies it, and it the weaker one."""
    asked = group.asked[at]
    text, yes = instructions_of(asked), asked.target[YES]
    stronger = add_noul(group, pick(rng, STRONGER).replace("{q}", text), CARRIED * yes)
    weaker = add_noul(group, pick(rng, WEAKER).replace("{q}", text), 1 - CARRIED * (1 - yes))
    group.ties.append(Tie(((stronger, YES),), ((at, YES),), at_most=True))
    group.ties.append(Tie(((at, YES),), ((weaker, YES),), at_most=True))


def choice_at(group: Group, at: int) -> Choice:
    """Returns the question at an index, which has to be a choice."""
    question = group.asked[at].question
    if question["type"] != "choice":
        raise TypeError(f"no choice: {question}")
    return question


def score_at(group: Group, at: int) -> Score:
    """Returns the question at an index, which has to be a score."""
    question = group.asked[at].question
    if question["type"] != "score":
        raise TypeError(f"no score: {question}")
    return question


def joined(rng: Random, group: Group, at: int) -> None:
    """Asks a choice again with two of its options merged into one."""
    question, target = choice_at(group, at), group.asked[at].target
    names, texts = list(question["criteria"]), meanings(question)
    first, second = rng.sample(range(len(names)), 2)
    rest = [i for i in range(len(names)) if i not in (first, second)]
    either = f"{texts[first]} or {texts[second]}"
    name, text = rng.choice(((f"{names[first]}_or_{names[second]}", either), (either, ""), (names[first], either)))
    criteria = {name: text, **{names[i]: question["criteria"][names[i]] for i in rest}}
    if len(criteria) < len(rest) + 1:
        return
    sums = [target[first] + target[second], *(target[i] for i in rest)]
    place = add(group, choice(question["instructions"], criteria), sums)
    group.ties.append(Tie(((at, first), (at, second)), ((place, 0),)))
    group.ties += [equal((at, i), (place, k)) for k, i in enumerate(rest, 1)]


def indicated(rng: Random, group: Group, at: int) -> None:
    """Asks about a choice or a score whether it is one of the options, and whether it is not."""
    asked = group.asked[at]
    names, text = meanings(asked.question), instructions_of(asked)
    right = max(range(len(names)), key=lambda i: asked.target[i])
    place = right if rng.random() < CHANCES.right_option else rng.randrange(len(names))
    chance = asked.target[place]
    made = add_noul(group, pick(rng, IS_IT).format(q=text, o=names[place]), chance)
    group.ties.append(equal((at, place), (made, YES)))
    if rng.random() < CHANCES.denied_option:
        wording = pick(rng, IS_NOT).format(q=text, o=names[place])
        other = add(group, noul(wording), [chance, 1 - chance])
        group.ties.append(equal((made, YES), (other, 0)))


def reached(rng: Random, group: Group, at: int) -> None:
    """Asks about a score whether it is at least a level or below it, and asks it again with two neighbouring levels
    merged, or all of them in pairs."""
    question, target = score_at(group, at), group.asked[at].target
    text, levels = question["instructions"], question["criteria"]
    level = rng.randrange(1, len(levels))
    upper = sum(target[level:])
    if rng.random() < CHANCES.at_least:
        made = add_noul(group, pick(rng, AT_LEAST).format(q=text, o=levels[level]), upper)
        group.ties.append(Tie(tuple((at, i) for i in range(level, len(levels))), ((made, YES),)))
    else:
        made = add(group, noul(pick(rng, AT_MOST).format(q=text, o=levels[level - 1])), [upper, 1 - upper])
        group.ties.append(Tie(tuple((at, i) for i in range(level)), ((made, YES),)))
    if len(levels) > 2 and rng.random() < CHANCES.merged_levels:
        single = [range(i, i + 1) for i in range(len(levels))]
        place = coarser(group, at, [*single[: level - 1], range(level - 1, level + 1), *single[level + 1 :]])
        group.ties.append(Tie(((at, level - 1), (at, level)), ((place, level - 1),)))
    if len(levels) > 3 and rng.random() < CHANCES.all_levels_merged:
        pairs = [range(start, min(start + 2, len(levels))) for start in range(0, len(levels), 2)]
        place = coarser(group, at, pairs)
        group.ties += [Tie(tuple((at, i) for i in pair), ((place, k),)) for k, pair in enumerate(pairs)]


def coarser(group: Group, at: int, parts: list[range]) -> int:
    """Asks a score again with each of these parts of its levels as one level, and returns the index."""
    question, target = score_at(group, at), group.asked[at].target
    levels = [" or ".join(question["criteria"][i] for i in part) for part in parts]
    return add(group, score(question["instructions"], levels), [sum(target[i] for i in part) for part in parts])


def meanings(question: Question) -> list[str]:
    """Returns the meanings of a choice's options or of a score's levels; none for a yes/no question."""
    if question["type"] == "choice":
        return [text or words.humanized(name) for name, text in question["criteria"].items()]
    return list(question["criteria"]) if question["type"] == "score" else []


def mirror(rng: Random, group: Group) -> None:
    """Adds to some groups a question that must fit one that is already there."""
    if not group.asked or rng.random() > CHANCES.mirrored or len(group.asked) > MOST_ASKED:
        return
    found = ways(rng, group)
    if found:
        rng.choices([way for _, way in found], [weight for weight, _ in found])[0]()


def ways(rng: Random, group: Group) -> list[tuple[float, Callable[[], None]]]:
    """Returns the ways in which one of a group's questions can be asked again, each with its weight."""
    types = [asked.question["type"] for asked in group.asked]
    nouls, scores = ([i for i, kind in enumerate(types) if kind == wanted] for wanted in ("noul", "score"))
    lists = [i for i, kind in enumerate(types) if kind == "choice" and 2 <= len(group.asked[i].target) <= LONGEST]
    found: list[tuple[float, Callable[[], None]]] = []
    if nouls:
        at = rng.choice(nouls)
        found.append((WEIGHTS.opposite, lambda: opposite(rng, group, at)))
        found.append((WEIGHTS.noul_reworded, lambda: reworded(rng, group, at)))
        found.append((WEIGHTS.retyped, lambda: retyped(rng, group, at)))
        found.append((WEIGHTS.strengthened, lambda: strengthened(rng, group, at)))
    if len(nouls) > 1:
        found.append((WEIGHTS.combined, lambda: combined(rng, group, *rng.sample(nouls, 2))))
        found.append((WEIGHTS.paired, lambda: paired(rng, group, *rng.sample(nouls, 2))))
    if len(nouls) > 2:
        found.append((WEIGHTS.counted, lambda: counted(rng, group, rng.sample(nouls, 3))))
    if lists:
        listed = rng.choice(lists)
        found.append((WEIGHTS.option_indicated, lambda: indicated(rng, group, listed)))
        found.append((WEIGHTS.choice_reworded, lambda: reworded(rng, group, listed)))
        if len(group.asked[listed].target) > 2:
            found.append((WEIGHTS.joined, lambda: joined(rng, group, listed)))
    if scores:
        scored = rng.choice(scores)
        found.append((WEIGHTS.level_reached, lambda: reached(rng, group, scored)))
        found.append((WEIGHTS.level_indicated, lambda: indicated(rng, group, scored)))
        found.append((WEIGHTS.score_reworded, lambda: reworded(rng, group, scored)))
    return found
