"""The parts of other rows that recipes use: labels, texts, pairs, claims and questions."""

from collections import defaultdict
from dataclasses import dataclass

from ..data.question import option_count
from ..data.rows import Row, State
from ..data.wording import humanized, is_none
from ..generate.written import SERVICES
from . import passages
from .unsettled import Claims, by_word

# Sources of what people want from a service.
INTENTS = frozenset(
    {
        "hwu64_fold1",
        "rasa",
        "snips",
        "sgd",
        "goemotions",
        "multidogo",
        "nlupp",
        "slurp_devtest",
        "home_intents",
        "rasa_bots",
        "nlu_eval_corpora",
        SERVICES,
    }
)
# The lengths in characters between which a text is short.
SHORT_TEXT = (8, 200)
# A state and a text that fits it.
Pair = tuple[State, str]


@dataclass
class Pools:
    """Pools across sources: label sets (name to description), plain texts, pairs of a state and a text that fits it,
    claims by source and the words in them, and questions over passages by source."""

    labels: list[dict[str, str]]
    texts: list[str]
    pairs: dict[str, list[Pair]]
    claims: Claims
    questions: dict[str, list[Row]]


def make_pools(rows: list[Row]) -> Pools:
    """Returns the pools of label sets, plain texts, pairs, claims and questions from all rows."""
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    pairs: dict[str, list[Pair]] = defaultdict(list)
    questions: dict[str, list[Row]] = defaultdict(list)
    texts = []
    for row in rows:
        if row.source in INTENTS and row.question["type"] == "choice":
            labels[row.source] |= named_labels(row.question["criteria"])
        if isinstance(row.state, str) and SHORT_TEXT[0] < len(row.state) < SHORT_TEXT[1]:
            texts.append(row.state)
        found = pair_of(row)
        if found is not None:
            kind, pair = found
            pairs[kind].append(pair)
        if row.source in passages.PARTS and row.question["type"] == "noul" and passages.question_of(row):
            questions[row.source].append(row)
    some_labels = list(labels.values()) or [{"greeting": "", "farewell": ""}]
    return Pools(some_labels, texts, pairs, by_word(rows), questions)


def named_labels(criteria: dict[str, str]) -> dict[str, str]:
    """Returns the options that have a meaning of their own; a description that only repeats the name is left out."""
    own = {name: text for name, text in criteria.items() if not is_none(name, text)}
    return {name: text if text != humanized(name) else "" for name, text in own.items()}


def pair_of(row: Row) -> tuple[str, Pair] | None:
    """Returns a row's pair of a state and a text that fits it, with the pair's kind; None if the row has no pair."""
    state, source = row.state, row.source
    if source == "qnli_dev" and row.label:
        return "question", (state["sentence"], state["question"])
    if source == "boolq_train1886":
        return "question", (state["passage"][:600], row.question["instructions"])
    if source in ("mnli_dev", "snli_dev") and row.label == "entailment":
        return "claim", (state["premise"], state["hypothesis"])
    if source == "stsb_en" and int(row.label) >= 4:
        return "paraphrase", (state["a"], state["b"])
    if source == "persona" and row.label:
        return "trait", (state["statement"], row.question["instructions"].split(": ")[-1].rstrip("."))
    if source == "sgd" and option_count(row.question) > 1:
        return "service", ({"dialogue": state["dialogue"]}, state["service"])
    if source in ("sigma", "splunk"):
        return "title", (state["description"][:500], state.get("title") or state.get("name"))
    if source == "infotabs" and row.label == "entailment":
        record = state["record"]
        fields = {key: value for key, value in list(record.items())[:8] if key != "title"}
        return "title", (fields, record["title"])
    return None
