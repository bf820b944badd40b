"""Reads exam questions that a language model wrote for this project, one by one; a third of them stand beside a passage
that holds the answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase

from ..data.rows import Row, parse_row

# The sources of questions that only knowledge answers, and of the same beside a passage that holds the answer.
EXAMS, LESSONS = "exams", "lessons"
FOLDER = Path(__file__).parent / "exams"
INSTRUCTIONS = "Pick the correct answer to `question`."


def exams(folder: Path = FOLDER) -> Iterator[Row]:
    """Yields the rows of every file, by the files' names; a question with a passage comes twice, without it and beside
    it."""
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            item, where = json.loads(line), f"{path.name}:{number}"
            criteria = dict(zip(ascii_uppercase, item["options"]))
            question = {"type": "choice", "instructions": INSTRUCTIONS, "criteria": criteria}
            asked = {"q": question, "label": ascii_uppercase[item["right"]]}
            yield parse_row({"state": {"question": item["question"]}, **asked}, EXAMS, where)
            if "passage" in item:
                state = {key: item[key] for key in ("question", "passage")}
                yield parse_row({"state": state, **asked}, LESSONS, where)
