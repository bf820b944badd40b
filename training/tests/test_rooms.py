"""The rooms of README.md: its table and the imports of the code say the same."""

import ast
import re
from pathlib import Path

TRAINING = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|$", re.M)


def rooms():
    """Returns the rooms of the table, from the top down, each with the rooms that it may use."""
    return {
        name: set(re.findall(r"`(\w+)/`", may_use))
        for name, may_use in ROW.findall((TRAINING / "README.md").read_text(encoding="utf-8"))
    }


def files():
    """Returns the modules, without the tests."""
    return [path for path in sorted(TRAINING.rglob("*.py")) if path.relative_to(TRAINING).parts[0] != "tests"]


def imported(path):
    """Yields the modules that a module imports from this package, as paths from its root on."""
    package = path.relative_to(TRAINING).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield (*package[: len(package) - node.level + 1], *(node.module or "").split("."))
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            assert not [name for name in names if name.split(".")[0] == "training"], f"{path}: imports are relative"


def arrows():
    """Returns the imports that leave their room, as (room, used room), with a file of each."""
    found = {}
    for path in files():
        room = path.relative_to(TRAINING).parts[0]
        for parts in imported(path):
            if len(path.relative_to(TRAINING).parts) > 1 and parts[0] != room:
                found[room, parts[0]] = path.name
    return found


def test_every_module_has_a_room():
    known, found = set(rooms()), {path.relative_to(TRAINING).parts[0] for path in files()}
    assert len(known) > 5 and found == known | {"__init__.py", "__main__.py"}


def test_a_room_uses_exactly_the_rooms_that_the_table_names():
    allowed = {(room, used) for room, may_use in rooms().items() for used in may_use}
    found = arrows()
    assert len(found) > 20
    assert {arrow: name for arrow, name in found.items() if arrow not in allowed} == {}
    assert allowed - set(found) == set()


def test_a_room_uses_only_rooms_further_down():
    place = {room: number for number, room in enumerate(rooms())}
    assert {arrow: name for arrow, name in arrows().items() if place[arrow[0]] >= place[arrow[1]]} == {}
