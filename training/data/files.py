"""Reads JSON files of which a part or another kind may be there."""

import json
from pathlib import Path
from typing import Any


def object_in(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; raises ValueError, which names the file, if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: no JSON object")
    return found
