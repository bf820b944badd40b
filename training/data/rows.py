"""Labelled decisions: reads and writes rows, and separates held-out rows."""

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator

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
    state: Any
    question: dict[str, Any]
    label: Any
    soft: list[float] | None = None


def option_count(question: dict[str, Any]) -> int:
    """Returns the number of options of a question; 2 for noul."""
    return 2 if question["type"] == "noul" else len(question["criteria"])


def label_index(question: dict[str, Any], label: Any) -> int:
    """Returns the index of a label among its question's options; noul's are false, true.

    Raises ValueError if the label is none of them.
    """
    kind, criteria = question["type"], question.get("criteria")
    if kind == "noul" and isinstance(label, bool):
        return int(label)
    if kind == "choice" and label in criteria:
        return list(criteria).index(label)
    if kind == "score" and isinstance(label, int) and 0 <= label < len(criteria):
        return label
    raise ValueError(f"label {label!r} is no answer to this {kind} question")


def read_rows(path: Path, source: str | None = None) -> Iterator[Row]:
    """Yields the rows of a JSON Lines file, which may be gzipped; `source` overrides the source that the rows name."""
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield parse_row(json.loads(line), source, f"{path.name}:{number}")


def parse_row(item: dict[str, Any], source: str | None, where: str) -> Row:
    """Returns a row from its JSON; raises ValueError, which names `where`, if the label does not fit the question."""
    row = Row(
        source or item.get("src") or where.split(".")[0],
        item["state"],
        item.get("q") or item["question"],
        item["label"],
        item.get("soft"),
    )
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
        for count, row in enumerate(rows, start=1):
            item = {"src": row.source, "state": row.state, "q": row.question, "label": row.label}
            if row.soft is not None:
                item["soft"] = row.soft
            out.write((json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
        out.close()
    return count


def state_key(state: Any) -> str:
    """Returns a text that is equal for equal states."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False, sort_keys=True)


def is_held_out(row: Row) -> bool:
    """Whether a row is held out from training; this follows from its state, so that no state is on both sides."""
    if row.source in HELD_OUT_SOURCES:
        return True
    return int.from_bytes(hashlib.blake2b(state_key(row.state).encode(), digest_size=4).digest()) % HELD_OUT_SHARE == 0
