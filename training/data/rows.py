"""Labelled decisions: reads and writes rows, and separates held-out rows."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from .question import Label, Question, label_index, option_count

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
# How far the sum of a distribution may be from 1, since annotators' shares are rounded.
SUM_TOLERANCE = 0.02


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
    """Yields the rows of a JSON Lines file, which may be gzipped; `source` overrides the source that the rows name.

    Raises ValueError, which names the file and the line, if a line is no row or cannot be read.
    """
    for number, line in numbered_lines(path):
        if line.strip():
            where = f"{path.name}:{number}"
            try:
                item = json.loads(line.rstrip())
            except json.JSONDecodeError as error:
                raise ValueError(f"{where}: no JSON: {error.msg} at column {error.colno}") from error
            yield parse_row(item, source, where)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines of a text file, which may be gzipped, with their numbers from 1 on."""
    number = 0
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                yield number, line
        except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name}, after line {number}: {error}") from error


def parse_row(item: dict[str, Any], source: str | None, where: str) -> Row:
    """Returns a row from its JSON; raises ValueError, which names `where`, if a part of it is missing, or if the label
    or the distribution does not fit the question."""
    try:
        row = row_of(item, source, where)
        label_index(row.question, row.label)
        check_soft(row)
    except KeyError as error:
        raise ValueError(f"{where}: the question has no {error}") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
    return row


def row_of(item: object, source: str | None, where: str) -> Row:
    """Returns a row from its JSON; raises ValueError if a part of it is missing."""
    if not isinstance(item, dict):
        raise ValueError("a row is an object")
    question = item.get("q") or item.get("question")
    found = {"state": "state" in item, "q": question is not None, "label": "label" in item}
    missing = [f"`{name}`" for name, is_there in found.items() if not is_there]
    if missing:
        raise ValueError(f"the row has no {' and no '.join(missing)}")
    if not isinstance(question, dict):
        raise ValueError("`q` is no object")
    named = source or item.get("src") or where.split(".")[0]
    return Row(named, item["state"], cast(Question, question), item["label"], item.get("soft"))


def check_soft(row: Row) -> None:
    """Raises ValueError if the row has a distribution that is none over the options of its question."""
    soft, count = row.soft, option_count(row.question)
    if soft is None:
        return
    if not isinstance(soft, list) or not all(type(share) in (int, float) and share >= 0 for share in soft):
        raise ValueError(f"`soft` is {soft!r}, no list of shares from 0 up")
    if len(soft) != count:
        raise ValueError(f"`soft` has {len(soft)} shares for {count} options")
    if not abs(sum(soft) - 1) <= SUM_TOLERANCE:
        raise ValueError(f"the shares of `soft` add up to {sum(soft):.3g}, not to 1")


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
            text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
            # Half of a surrogate pair becomes its escape in JSON.
            out.write((text + "\n").encode(errors="backslashreplace"))
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
    key = state_key(row.state).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=4).digest()) % HELD_OUT_SHARE == 0
