"""Questions that ask the same in several forms, which the model reads in one of them."""

from dataclasses import dataclass

from .question import ServedQuestion, choice, noul, option_count

# The names of a yes/no question's two sides, "no" with its "yes".
SIDES = (("no", "yes"), ("false", "true"))


@dataclass(frozen=True)
class Reading:
    """The question that is read, and for each option of the caller's question its place in it."""

    question: ServedQuestion
    places: list[int]


def plain(question: ServedQuestion) -> Reading:
    """Returns the caller's question as it is."""
    return Reading(question, list(range(option_count(question))))


def unified(question: ServedQuestion) -> Reading:
    """Returns a question in the form that it shares with those that ask the same: yes or no as a noul, whatever its
    type, levels in words as the options of a choice, and options with the same description as one, under the first of
    their names."""
    found = yes_or_no(question) or levels_as_options(question) or with_each_description_once(question)
    return found or plain(question)


def reading_of(question: ServedQuestion, unify: bool) -> Reading:
    """Returns how a model reads a question, by the `unify` of its config.json."""
    return unified(question) if unify else plain(question)


def yes_or_no(question: ServedQuestion) -> Reading | None:
    """Returns a choice or a score between yes and no as a noul; None for other questions."""
    if question["type"] == "noul" or len(question["criteria"]) != 2:
        return None
    criteria = question["criteria"]
    names = tuple(name.lower() for name in criteria)
    if names not in SIDES and names[::-1] not in SIDES:
        return None
    places = [0, 1] if names in SIDES else [1, 0]
    described = criteria.values() if isinstance(criteria, dict) else ()
    sides = {("false", "true")[place]: text for text, place in zip(described, places) if says_more(text, place)}
    return Reading(noul(question.get("instructions", ""), sides or None), places)


def says_more(text: str | None, place: int) -> bool:
    """Whether a side's description is more than another word for it."""
    return bool(text) and (text or "").lower() not in (words[place] for words in SIDES)


def levels_as_options(question: ServedQuestion) -> Reading | None:
    """Returns a score whose levels are in words, all different, as a choice between them; None for other questions."""
    if question["type"] != "score":
        return None
    levels = question["criteria"]
    if len(set(levels)) < len(levels) or not all(in_words(level) for level in levels):
        return None
    return Reading(choice(question.get("instructions", ""), dict.fromkeys(levels, "")), list(range(len(levels))))


def in_words(level: str) -> bool:
    """Whether a level says in words what it is."""
    return any(not it.isascii() or it.isalpha() for it in level)


def with_each_description_once(question: ServedQuestion) -> Reading | None:
    """Returns a choice without options whose description another has, too; None if there are none."""
    if question["type"] != "choice" or not isinstance(question["criteria"], dict):
        return None
    first: dict[str, str] = {}
    for name, text in question["criteria"].items():
        if text:
            first[text] = min(first.get(text, name), name, key=str.encode)
    stands = [first[text] if text else name for name, text in question["criteria"].items()]
    kept = {name: text for (name, text), one in zip(question["criteria"].items(), stands) if name == one}
    if len(kept) == len(stands):
        return None
    order = list(kept)
    return Reading(choice(question.get("instructions", ""), kept), [order.index(one) for one in stands])
