"""Labelled decisions: reads and writes rows, and separates held-out rows."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .question import Label, Question, label_index

# A state is a text or any other JSON value. Each recipe knows the shape of its sources' states.
State = Any
# A state, a question about it and the answer.
Item = tuple[State, Question, Label]

# The files of prepared rows: those to train on, those that are held out, and the latter in the form of a training step,
# with wordings that no step uses.
TRAIN, HELD_OUT, ASKED = "train.jsonl.gz", "held-out.jsonl.gz", "held-out-asked.jsonl.gz"

# The source of rows that sentence encoders answer.
LIKENESS = "likeness"
# Whole sources that are never trained on: temperatures and the act head are fitted on them, so that these describe
# questions of a new kind.
HELD_OUT_SOURCES = frozenset({"pubmedqa", "prom_alerts", "rasa", "scitail_dev"})
# In addition, one in this many states of every other source is held out.
HELD_OUT_SHARE = 40


@dataclass
class Row:
    """One question about one state, with its answer.

    `label` is a boolean (noul), an option's name (choice) or a level's index (score); `soft` is a distribution over the
    options in their order if the annotators' votes are known.
    """

    source: str
    state: State
    question: Question
    label: Label
    soft: list[float] | None = None


def read_rows(path: Path, source: str | None = None) -> Iterator[Row]:
    """Yields the rows of a JSON Lines file, which may be gzipped; `source` overrides the source that the rows name."""
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield parse_row(json.loads(line), source, f"{path.name}:{number}")


def parse_row(item: dict[str, Any], source: str | None, where: str) -> Row:
    """Returns a row from its JSON; raises ValueError, which names `where`, if the label does not fit the question."""
    named = source or item.get("src") or where.split(".")[0]
    row = Row(named, item["state"], item.get("q") or item["question"], item["label"], item.get("soft"))
    try:
        label_index(row.question, row.label)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
    return row


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Writes rows to a JSON Lines file, gzipped if its name says so, and returns their number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("wb") as file:
        # The gzip header gets no time and no name, so that the same rows make the same file.
        out = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.suffix == ".gz" else file
        for row in rows:
            item = {"src": row.source, "state": row.state, "q": row.question, "label": row.label}
            if row.soft is not None:
                item["soft"] = row.soft
            out.write((json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
            count += 1
        out.close()
    return count


def state_key(state: State) -> str:
    """Returns a text that is equal for equal states."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False, sort_keys=True)


def is_held_out(row: Row) -> bool:
    """Whether a row is held out from training; this follows from its state, so that no state is on both sides."""
    if row.source in HELD_OUT_SOURCES:
        return True
    return int.from_bytes(hashlib.blake2b(state_key(row.state).encode(), digest_size=4).digest()) % HELD_OUT_SHARE == 0
