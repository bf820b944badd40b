"""`data`: prepares labelled rows, generated rows and rows that sentence encoders answer, and splits them into rows to
train on and held-out rows."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from ..data.question import label_at
from ..data.rows import ASKED, HELD_OUT, TRAIN, Row, is_held_out, read_rows, write_rows
from ..generate.exams import exams
from ..generate.rows import generated
from ..generate.written import written
from ..recipes.mixture import Mixture
from ..similarity.likeness import likeness
from .values import whole

# The number of held-out groups that are asked as a step would ask them, and their longest sequence in tokens.
ASKED_GROUPS, ASKED_TOKENS = 4000, 896


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "--data", type=Path, help="folder with train/*.jsonl.gz; without it there are generated rows alone"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the prepared rows")
    parser.add_argument(
        "--generated", type=whole(0), default=60_000, help="how many rows to generate (default: %(default)s)"
    )
    parser.add_argument(
        "--likeness",
        type=whole(0),
        default=60_000,
        help="how many rows that the base model answers (default: %(default)s)",
    )
    parser.add_argument(
        "--teacher",
        type=Path,
        help="folder of all-mpnet-base-v2, whose cosines count as much as the base model's in those rows",
    )
    parser.add_argument(
        "--bf16", action="store_true", help="embeddings in bfloat16: twice as fast on processors with it, else slower"
    )
    parser.add_argument("--seed", type=int, default=7)


def source_rows(data: Path) -> list[Row]:
    """Returns the rows of every file below `train`; the name of the file is their source."""
    files = sorted((data / "train").glob("*.jsonl*"))
    if not files:
        raise FileNotFoundError(f"{data}: no train/*.jsonl or train/*.jsonl.gz")
    return [row for path in tqdm(files, desc="sources") for row in read_rows(path, path.name.split(".")[0])]


def evaluated_states(data: Path) -> set[str]:
    """Returns the identities of the evaluation sets' rows; a row with the same state and instructions is not trained
    on."""
    return {identity(row) for path in sorted((data / "dev").glob("*.jsonl*")) for row in read_rows(path)}


def identity(row: Row) -> str:
    """Returns a text that is equal for rows that ask the same about the same state."""
    return repr((row.state, row.question["instructions"]))


def asked_rows(rows: list[Row], seed: int) -> Iterator[Row]:
    """Yields the questions that a step would ask about held-out rows, in the wordings that are reserved for them."""
    for encoded in Mixture(rows, seed, held_out=True).pool(0, ASKED_GROUPS) if rows else []:
        if len(encoded.ids) <= ASKED_TOKENS:
            for asked in encoded.group.asked:
                likeliest = max(asked.target)
                label = label_at(asked.question, asked.target.index(likeliest))
                soft = asked.target if likeliest < 1 else None
                yield Row(encoded.group.source, encoded.group.state, asked.question, label, soft)


def split(rows: Iterable[Row]) -> dict[bool, list[Row]]:
    """Returns the rows to train on, under False, and those that are held out, under True."""
    kept: dict[bool, list[Row]] = {False: [], True: []}
    for row in rows:
        kept[is_held_out(row)].append(row)
    return kept


def run(args: argparse.Namespace) -> None:
    """Writes `train.jsonl.gz` and `held-out.jsonl.gz`, and prints how many rows of each source they have."""
    rows = source_rows(args.data) if args.data else []
    barred = evaluated_states(args.data) if args.data else set()
    rows = [row for row in rows if identity(row) not in barred] + list(generated(args.seed, args.generated))
    kept = split(rows)
    kept[False].extend(likeness(kept[False], args.seed, args.likeness, args.teacher, args.bf16))
    for is_out, some in split([*written(), *exams()]).items():
        kept[is_out].extend(some)
    write_rows(args.out / ASKED, asked_rows(kept[True], args.seed))
    for held_out, name in ((False, TRAIN), (True, HELD_OUT)):
        write_rows(args.out / name, kept[held_out])
        counts = Counter(row.source for row in kept[held_out])
        print(f"{name}: {len(kept[held_out])} rows;", dict(sorted(counts.items())))
