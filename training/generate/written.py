"""Reads the rows that a language model wrote for this project, one by one and from no template: everyday texts and
records of many fields, each with several questions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data.rows import Row, parse_row

# The sources of rows with questions of every type, and of messages with a list of what people want from a service.
WRITTEN, SERVICES = "written", "services"
FOLDER = Path(__file__).parent / "written"
# The folder of series, whose states go from the lowest level of a question to the highest.
SERIES = "ranked"


def source_of(series: Path) -> str:
    """Returns the source of a file of series; its prefix keeps it apart from a user's files."""
    return f"series_{series.stem}"


# The sources of series.
RANKED = tuple(source_of(path) for path in sorted((FOLDER / SERIES).glob("*.jsonl")))


def rows_of(path: Path, source: str) -> Iterator[Row]:
    """Yields the rows of a file whose lines have a state and several questions with their labels."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        item = json.loads(line)
        for question in item["questions"]:
            asked = {key: value for key, value in question.items() if key != "label"}
            row = {"state": item["state"], "q": asked, "label": question["label"]}
            yield parse_row(row, source, f"{path.name}:{number}")


def headed(folder: Path, kind: str) -> Iterator[tuple[Path, dict[str, Any], str, dict[str, Any]]]:
    """Yields each further line of the files in a folder, whose first line has the question of all: the file, the
    question, where the line stands, and the line."""
    for path in sorted(folder.glob("*.jsonl")):
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        question = {"type": kind, **json.loads(first)}
        for number, line in enumerate(rest, 2):
            yield path, question, f"{path.name}:{number}", json.loads(line)


def written(folder: Path = FOLDER) -> Iterator[Row]:
    """Yields the rows of every file, by the files' names; rows about one state follow each other.

    A file in `services` begins with a line of a question and its options; each further line has a message, or several,
    and the option that is right. One in `ranked` begins with a score; each further line has a state for each level.
    """
    for path in sorted(folder.glob("*.jsonl")):
        yield from rows_of(path, WRITTEN)
    for _, question, where, item in headed(folder / SERVICES, "choice"):
        for text in item["texts"]:
            yield parse_row({"state": text, "q": question, "label": item["label"]}, SERVICES, where)
    for path, question, where, item in headed(folder / SERIES, "score"):
        states, levels = item["states"], question["criteria"]
        if len(states) != len(levels):
            raise ValueError(f"{where}: {len(states)} states for {len(levels)} levels")
        for level, state in enumerate(states):
            yield parse_row({"state": state, "q": question, "label": level}, source_of(path), where)
