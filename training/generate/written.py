"""Reads the rows that a language model wrote for this project, one by one and from no template: everyday texts and
records of many fields, each with several questions."""

import json
from collections.abc import Iterator
from pathlib import Path

from ..data.rows import Row, parse_row

# The sources of rows with questions of every type, and of messages with a list of what people want from a service.
WRITTEN, SERVICES = "written", "services"
FOLDER = Path(__file__).parent / "written"
# The folder of series, whose states go from the lowest level of a question to the highest, and the sources in it.
SERIES = "ranked"
RANKED = tuple(sorted(f"series_{path.stem}" for path in (FOLDER / SERIES).glob("*.jsonl")))


def rows_of(path: Path, source: str) -> Iterator[Row]:
    """Yields the rows of a file whose lines have a state and several questions with their labels."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        item = json.loads(line)
        for question in item["questions"]:
            asked = {key: value for key, value in question.items() if key != "label"}
            row = {"state": item["state"], "q": asked, "label": question["label"]}
            yield parse_row(row, source, f"{path.name}:{number}")


def written(folder: Path = FOLDER) -> Iterator[Row]:
    """Yields the rows of every file, by the files' names; rows about one state follow each other.

    A file in `services` begins with a line of a question and its options; each further line has a message, or several,
    and the option that is right. One in `SERIES` begins with a score; each further line has a state for each level.
    """
    for path in sorted(folder.glob("*.jsonl")):
        yield from rows_of(path, WRITTEN)
    for path in sorted((folder / SERVICES).glob("*.jsonl")):
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        question = {"type": "choice", **json.loads(first)}
        for number, line in enumerate(rest, 2):
            item = json.loads(line)
            for text in item["texts"]:
                row = {"state": text, "q": question, "label": item["label"]}
                yield parse_row(row, SERVICES, f"{path.name}:{number}")
    for path in sorted((folder / SERIES).glob("*.jsonl")):
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        question = {"type": "score", **json.loads(first)}
        for number, line in enumerate(rest, 2):
            states = json.loads(line)["states"]
            if len(states) != len(question["criteria"]):
                raise ValueError(f"{path.name}:{number}: {len(states)} states for {len(question['criteria'])} levels")
            for level, state in enumerate(states):
                row = {"state": state, "q": question, "label": level}
                yield parse_row(row, f"series_{path.stem}", f"{path.name}:{number}")
