"""`finetune`: makes a served folder from a user's own labelled rows, in CSV or JSON Lines."""

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path

from ..calibration.fitting import (
    CALIBRATION,
    FEWEST_ROWS,
    Calibration,
    applied,
    besides,
    fit_temperatures,
    fitted,
    of_type,
)
from ..calibration.metrics import Array, interval
from ..data.question import label_index
from ..data.rows import HELD_OUT, TRAIN, Row, parse_row, read_rows, state_key, write_rows
from ..folder.graph import build
from ..folder.writer import About, write_folder
from ..generate.rows import generated
from ..model.int8_matmul import Ranges
from ..model.predict import Reading, predict
from ..model.served import served_ranges
from ..model.weights import load_model
from ..quantize.ranges import PERCENTILE, inputs_of, ranges_of, sample, simulate
from . import train
from .values import number, version, whole

SOURCE = "own"
# The columns that every line of CSV has; a fifth, criteria, may be missing or empty.
COLUMNS = ("state", "type", "instructions", "label")
# Fewer held-out rows than this tell nothing about the model, and a temperature fitted on them would be random.
FEWEST_HELD_OUT = 20
# One in this many states is held out.
HELD_OUT_SHARE = 5
# The rows that give the ranges of the products' inputs, and the generated rows among which they are drawn.
RANGE_ROWS, RANGE_GENERATED = 600, 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "--own",
        type=Path,
        required=True,
        help="labelled rows: .csv with the columns state, type, instructions, criteria, label; or .jsonl",
    )
    parser.add_argument("--start", type=Path, required=True, help="checkpoint or model folder to start from")
    parser.add_argument(
        "--out", type=Path, required=True, help="the model folder to write; the run's files go into OUT/run"
    )
    parser.add_argument("--steps", type=whole(1), default=300)
    parser.add_argument(
        "--generated", type=whole(0), default=2000, help="generated rows mixed in, so that what the model knew is kept"
    )
    parser.add_argument("--rate", type=number(0), default=3e-5)
    parser.add_argument("--batch-tokens", type=whole(1), default=2048)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--name", default="svc-own")
    parser.add_argument("--version", type=version, default="0.1.0")


def read_own(path: Path) -> list[Row]:
    """Returns a user's rows; raises ValueError, which names the line, if one cannot be read."""
    if path.suffix != ".csv":
        return list(read_rows(path, SOURCE))
    with path.open(encoding="utf-8-sig", newline="") as lines:
        numbered = enumerate(csv.DictReader(lines), start=2)
        return [read_csv(line, f"{path.name}:{number}") for number, line in numbered]


def read_csv(line: dict[str, str | None], where: str) -> Row:
    """Returns the row of a line of CSV; raises ValueError, which names `where`, if it is none."""
    missing = [column for column in COLUMNS if line.get(column) is None]
    if missing:
        raise ValueError(f"{where}: the column {missing[0]} is missing")
    try:
        item = csv_item({column: value for column, value in line.items() if value is not None})
    except ValueError as error:
        raise ValueError(f"{where}: the criteria are not JSON: {error}") from error
    return parse_row(item, SOURCE, where)


def csv_item(line: dict[str, str]) -> dict[str, object]:
    """Returns a row's JSON from a line of CSV: a state, criteria and a label that are JSON are parsed, all else is
    text."""
    question: dict[str, object] = {"type": line["type"], "instructions": line["instructions"]}
    if line.get("criteria"):
        question["criteria"] = json.loads(line["criteria"])
    state = parsed(line["state"]) if line["state"][:1] in ("{", "[") else line["state"]
    label = line["label"] if line["type"] == "choice" else parsed(line["label"].lower())
    return {"state": state, "q": question, "label": label}


def parsed(text: str) -> object:
    """Returns the text's JSON value, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def hold_out(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Returns rows to train on and rows to judge by; no state is in both. Raises ValueError if there are too few."""
    states = list(dict.fromkeys(state_key(row.state) for row in rows))
    held = set(states[::HELD_OUT_SHARE])
    kept = [row for row in rows if state_key(row.state) not in held]
    out = [row for row in rows if state_key(row.state) in held]
    if len(out) < FEWEST_HELD_OUT:
        raise ValueError(f"{len(rows)} rows leave {len(out)} to judge by; at least {FEWEST_HELD_OUT} are needed")
    return kept, out


def judged(
    path: Path, ranges: Ranges, rows: list[Row], device: str, calibration: Calibration
) -> tuple[list[Array], str]:
    """Returns the logits of a checkpoint or a folder, in int8 if there are ranges, and its accuracy in words."""
    model = load_model(path)
    if ranges:
        simulate(model, ranges)
    logits = [found.double().numpy() for found in predict(model, rows, Reading(device))]
    answered = [applied(calibration, row.question, found)[0] for found, row in zip(logits, rows)]
    right = sum(int(found.argmax() == label_index(row.question, row.label)) for found, row in zip(answered, rows))
    low, high = interval(right, len(rows))
    return logits, f"{right / len(rows):.3f} of {len(rows)} held-out rows (95 %: {low:.3f} to {high:.3f})"


def fitted_again(start: Calibration, rows: list[Row], logits: list[Array]) -> Calibration:
    """Returns the start's fitted values, with the temperature of each type of which there are enough held-out rows; a
    temperature of a few dozen rows would be random."""
    enough = [kind for kind in start["temperature"] if sum(map(of_type(kind), rows)) >= FEWEST_ROWS]
    fits = [(row, found) for row, found in zip(rows, logits) if any(of_type(kind)(row) for kind in enough)]
    labels = [label_index(row.question, row.label) for row, _ in fits]
    own = fit_temperatures([row for row, _ in fits], [found for _, found in fits], labels)
    temperature = start["temperature"] | {kind: own[kind] for kind in enough}
    by_options = [one for one in start.get("temperature_by_options", []) if one["type"] not in enough]
    return {"temperature": temperature, "temperature_by_options": by_options, "noul_bias": start.get("noul_bias", {})}


def train_arguments(args: argparse.Namespace, run_folder: Path, in_int8: bool) -> argparse.Namespace:
    """Returns the arguments for `train`."""
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    values = {"--rows": run_folder, "--out": run_folder, "--start": args.start, "--steps": args.steps}
    values |= {"--batch-tokens": args.batch_tokens, "--rate": args.rate, "--seed": args.seed, "--device": args.device}
    given = [str(part) for pair in values.items() for part in pair]
    return parser.parse_args([*given, "--int8"] if in_int8 else given)


def rows_for_training(kept: list[Row], args: argparse.Namespace) -> Iterator[Row]:
    """Yields the user's rows, and then generated rows."""
    yield from kept
    yield from generated(args.seed, args.generated)


def run(args: argparse.Namespace) -> None:
    """Trains, fits temperatures on held-out rows, exports, and prints the model's accuracy before and after."""
    start: Calibration = {**fitted(args.start if args.start.is_dir() else args.start.parent), "unify": True}
    kept, out = hold_out(read_own(args.own))
    folder = args.out / "run"
    write_rows(folder / TRAIN, rows_for_training(kept, args))
    write_rows(folder / HELD_OUT, out)
    # A model that was trained in int8 is trained on in int8, because its weights are meant for these ranges.
    ranges = served_ranges(args.start) if args.start.is_dir() else {}
    print("before:", judged(args.start, ranges, out, args.device, start)[1])
    train.run(train_arguments(args, folder, bool(ranges)))
    logits, words = judged(folder / "checkpoint.safetensors", ranges, out, args.device, start)
    print("after: ", words)
    found = fitted_again(start, out, logits)
    (folder / CALIBRATION).write_text(json.dumps(found, indent=2) + "\n")
    model = load_model(folder / "checkpoint.safetensors").eval()
    if not ranges:
        rows = sample([*out, *generated(args.seed + 1, RANGE_GENERATED)], RANGE_ROWS)
        ranges = ranges_of(inputs_of(model, rows), PERCENTILE)
    write_folder(args.out, build(model, ranges), About(args.name, args.version, found["temperature"], besides(found)))
    print(f"{args.out}: a model folder; serve it with `svc serve --model {args.out}`")
