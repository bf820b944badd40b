"""The answers of a model folder to evaluation sets, and all results of an evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import NotRequired, TypedDict

from tqdm import tqdm

from ..calibration.fitting import applied
from ..calibration.metrics import Array
from ..data.layout import state_text
from ..data.rows import Row, read_rows, state_key
from ..folder.reader import Folder
from ..similarity.embeddings import Meanings, cosines_of
from .coherence import Deviation
from .figures import (
    JUDGED,
    Figures,
    Judged,
    Together,
    accuracy_of,
    add_candidate_figures,
    among_candidates,
    judged,
    summary,
    together,
)
from .jevbench import Scores
from .needle import Found
from .probes import Bias, Known


class SetsResults(TypedDict):
    """Every set's figures, and those of all rows together."""

    sets: dict[str, Figures]
    together: Together


class Compared(TypedDict):
    """The figures of another folder on a set, and the rows that only one of the two gets right."""

    accuracy: float
    interval: tuple[float, float]
    calibration_error: float
    gained: int
    lost: int


class Against(TypedDict):
    """Another folder's figures on the same rows."""

    name: str
    sets: dict[str, Compared]
    mean_calibration_error: float | None


class Cosine(TypedDict):
    """The accuracy of the untrained base model on a set of choices."""

    accuracy: float
    among_16: NotRequired[float]
    without_none: NotRequired[float]


class OfType(TypedDict):
    """The figures of the battery's questions of one type."""

    rows: int
    accuracy: float
    calibration_error: float


class Results(TypedDict):
    """The results of an evaluation: the folder, and the parts that were asked for."""

    name: str
    version: str
    temperature: dict[str, float]
    sha256: str
    bytes: int
    sets: NotRequired[dict[str, Figures]]
    together: NotRequired[Together]
    cosine: NotRequired[dict[str, Cosine]]
    coherence: NotRequired[dict[str, Deviation]]
    needle: NotRequired[Found]
    bias: NotRequired[Bias]
    cases: NotRequired[list[Known]]
    battery: NotRequired[dict[str, OfType]]
    jevbench: NotRequired[Scores]
    against: NotRequired[Against]


@dataclass(frozen=True)
class Sets:
    """The evaluation sets to use: those of a folder that are named, or of a half (`choosing`, `judged` or `both`); at
    most `limit` rows of each."""

    data: Path
    half: str = "choosing"
    names: list[str] | None = None
    limit: int | None = None

    def holds(self, name: str) -> bool:
        """Whether a set is among them."""
        return self.in_half(name) and (not self.names or name in self.names)

    def in_half(self, name: str) -> bool:
        """Whether a set is in the half."""
        return self.half == "both" or (self.half == "judged") == (name in JUDGED)

    def rows(self) -> Iterator[tuple[str, list[Row]]]:
        """Yields the sets with their rows; raises FileNotFoundError if there is none, and ValueError for a name that is
        no set or a set of the other half."""
        files = {path.name.split(".")[0]: path for path in sorted((self.data / "dev").glob("*.jsonl*"))}
        for name in self.names or []:
            if name not in files:
                raise ValueError(f"{self.data}: there is no set {name!r}; there are {', '.join(files)}")
            if not self.in_half(name):
                raise ValueError(f"{name!r} is not among the {self.half} sets")
        wanted = {name: path for name, path in files.items() if self.holds(name)}
        if not wanted:
            raise FileNotFoundError(f"{self.data}: no dev/*.jsonl or dev/*.jsonl.gz that is asked for")
        for name, path in wanted.items():
            rows = list(read_rows(path))
            # The rows are drawn at random and not every n-th is taken, because some files have their labels in turn.
            yield name, Random(5).sample(rows, self.limit) if self.limit and self.limit < len(rows) else rows


def answers(folder: Folder, rows: list[Row], name: str) -> list[Judged]:
    """Returns the answer to each row's question."""
    found: dict[int, Judged] = {}
    # Rows about one state come after each other, so that the state is read only once.
    order = sorted(range(len(rows)), key=lambda i: state_key(rows[i].state))
    for i in tqdm(order, desc=name, mininterval=5, leave=False):
        answer = folder.ask(state_text(rows[i].state), rows[i].question)
        logits, temperature = applied(folder.config, rows[i].question, answer.logits)
        found[i] = judged(rows[i], logits, temperature, answer.act)
    return [found[i] for i in range(len(rows))]


def logits_of(folder: Folder, rows: list[Row]) -> list[Array]:
    """Returns the logits of each row's options."""
    return [one.logits for one in answers(folder, rows, "fewer options")]


def evaluate_sets(folder: Folder, wanted: Sets) -> SetsResults:
    """Returns every set's figures, and those of all rows together."""
    sets: dict[str, Figures] = {}
    everything: list[Judged] = []
    for name, rows in wanted.rows():
        found = answers(folder, rows, name)
        figures = sets[name] = summary(rows, found)
        add_candidate_figures(figures, rows, partial(logits_of, folder))
        everything += found
        accuracy, error = figures["accuracy"], figures["calibration_error"]
        print(f"{name}: {accuracy:.3f} of {len(rows)}, calibration error {error:.3f}", flush=True)
    return {"sets": sets, "together": together(sets, everything)}


def evaluate_cosine(wanted: Sets) -> dict[str, Cosine]:
    """Returns the accuracy of the untrained base model on choices, by its cosines of the text and each option."""
    found: dict[str, Cosine] = {}
    for name, rows in wanted.rows():
        if all(row.question["type"] == "choice" for row in rows):
            # A cosine does not depend on the other options, so fewer options need no other embeddings.
            cosines = partial(cosines_by, Meanings())
            found[name] = {"accuracy": accuracy_of(rows, cosines), **among_candidates(rows, cosines)}
    return found


def cosines_by(meanings: Meanings, rows: list[Row]) -> list[Array]:
    """Returns the cosines of each row's text and options, all of whose questions are choices."""
    return cosines_of([(row.state, row.question) for row in rows if row.question["type"] == "choice"], meanings)


def compared(results: Results, other: Results) -> Against:
    """Returns each set's accuracy together with another folder's on the same rows."""
    table: dict[str, Compared] = {}
    for name, own in results.get("sets", {}).items():
        theirs = other["sets"].get(name)
        if theirs and len(theirs["right"]) == len(own["right"]):
            pairs = list(zip(own["right"], theirs["right"]))
            table[name] = {
                "accuracy": theirs["accuracy"],
                "interval": theirs["interval"],
                "calibration_error": theirs["calibration_error"],
                "gained": sum(a > b for a, b in pairs),
                "lost": sum(a < b for a, b in pairs),
            }
    error = other["together"]["mean_calibration_error"]
    return {"name": f"{other['name']} {other['version']}", "sets": table, "mean_calibration_error": error}
