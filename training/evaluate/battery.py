"""Questions of the kinds that users ask, written for this project; no model is trained on them."""

from collections import defaultdict
from pathlib import Path

from ..calibration.metrics import calibration_error
from ..folder.reader import Folder
from ..generate.written import rows_of
from .answers import OfType, answers
from .figures import Judged, right_and_confidence

FILE = Path(__file__).parent / "battery.jsonl"


def battery(folder: Folder) -> dict[str, OfType]:
    """Returns the figures of each type of question."""
    rows = list(rows_of(FILE, "battery"))
    found: dict[str, list[Judged]] = defaultdict(list)
    for row, one in zip(rows, answers(folder, rows, "battery")):
        found[row.question["type"]].append(one)
    return {kind: figures_of(own) for kind, own in sorted(found.items())}


def figures_of(found: list[Judged]) -> OfType:
    """Returns the figures of some answers."""
    right, confidence = right_and_confidence(found)
    return {
        "rows": len(found),
        "accuracy": float(right.mean()),
        "calibration_error": calibration_error(confidence, right),
    }
