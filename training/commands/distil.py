"""`distil`: trains the small model on prepared batches, on labels and on the answers of a larger encoder, if there is
one."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch.nn import functional as F

from ..distil.prepared import check_folders, read_all, stream
from ..distil.reader import Reader, load_reader
from ..distil.timed import Clock, Log, checked, prepare_device, warn_without_steps
from ..distil.words import in_other_words, near_words
from ..model.batches import Batch
from ..model.encoder import LAYERS, Model
from ..model.int8_matmul import Ranges
from ..model.weights import load_model, save_model
from ..quantize.ranges import PERCENTILE, RANGES, inputs_in, ranges_of, simulate, widest, write_ranges
from ..train.checkpoint import WEIGHTS, Average
from ..train.loss import learned
from ..train.optimizer import Rates, make_optimizer, share_at, update
from .teach import BF16_HELP, LONGEST
from .values import number, whole

# The shares of the time in which the rate rises and falls.
WARM_UP, DECAY = 0.05, 0.7
# The batches that give the ranges of a run in int8.
RANGE_BATCHES = 6
# The default shares of a teacher's answer, and of the batches in other words.
TAUGHT, REWORDED = 0.6, 0.4
TAUGHT_HELP = f"share of the larger encoder's answer in the target of a labelled question (default: {TAUGHT})"
REWORDED_HELP = (
    f"share of the batches in which words are replaced by near ones, and which it answers alone (default: {REWORDED})"
)


@dataclass(frozen=True)
class Teacher:
    """A larger encoder, and the words that may stand for others in the texts about which it alone answers."""

    reader: Reader
    near: torch.Tensor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--batches", type=Path, required=True, help="folder that `prepare` writes, or has written")
    parser.add_argument("--teacher", type=Path, help="file that `teach` wrote; without one only labels are learned")
    parser.add_argument("--start", type=Path, required=True, help="checkpoint or model folder to start from")
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint, the log and the ranges")
    parser.add_argument("--seconds", type=number(0), required=True, help="how long to train")
    parser.add_argument("--rate", type=number(0), default=3e-4, help="peak learning rate of the last layer")
    parser.add_argument("--head-rate", type=number(0), default=5e-4)
    parser.add_argument("--last-rate", type=number(0), default=0.0, help="share of the rates at the end")
    parser.add_argument(
        "--layer-decay", type=number(0, 1), default=0.9, help="each layer's share of the rate of the one above"
    )
    parser.add_argument(
        "--frozen", type=whole(0, LAYERS), default=0, help="layers from the bottom that stay as they are"
    )
    parser.add_argument("--consistency", type=number(0), default=1.0, help="weight of what ties answers together")
    parser.add_argument("--eye", type=number(0), default=0.5, help="weight of the loss of the similarity term alone")
    parser.add_argument("--taught", type=number(0, 1), help=TAUGHT_HELP)
    parser.add_argument("--reworded", type=number(0, 1), help=REWORDED_HELP)
    parser.add_argument(
        "--average", type=number(0, 1), default=0.998, help="decay of the running average of the weights"
    )
    parser.add_argument("--int8", action="store_true", help="compute as int8 will")
    parser.add_argument("--bf16", action="store_true", help=BF16_HELP)
    parser.add_argument("--first", type=whole(0), default=0, help="number of the first pool")
    parser.add_argument("--check", type=Path, help="folder with held-out batches to answer at the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")


@torch.no_grad()
def answered(batch: Batch, reader: Reader, share: float) -> Batch:
    """Returns a batch whose targets are the larger encoder's answers where there is no label, and elsewhere a mean of
    both; what sentence encoders have answered stays."""
    if batch.ids.shape[1] > LONGEST:
        return batch
    return batch.with_answers(F.softmax(reader(batch), dim=-1), torch.where(batch.is_labelled(), share, 1.0))


def batches_of(args: argparse.Namespace, teacher: Teacher | None, clock: Clock) -> Iterator[tuple[Batch, Batch]]:
    """Yields each batch as it was labelled and as it is to be learned: without a teacher, as it was labelled."""
    batches = stream(args.batches, args.device, clock.is_over, args.first)
    if teacher is None:
        yield from ((batch, batch) for batch in batches)
        return
    taught = TAUGHT if args.taught is None else args.taught
    reworded = REWORDED if args.reworded is None else args.reworded
    draws = torch.Generator().manual_seed(args.seed)
    for batch in batches:
        is_short = batch.ids.shape[1] <= LONGEST
        if is_short and torch.rand((), generator=draws).item() < reworded:
            batch = in_other_words(batch, teacher.near)
        yield batch, answered(batch, teacher.reader, taught)


def teacher_of(args: argparse.Namespace, model: Model) -> Teacher | None:
    """Returns the larger encoder with the model's near words, if there is one; refuses an untrained one, and options
    that say what to do with it if there is none."""
    if args.teacher is None:
        if args.taught is not None or args.reworded is not None:
            raise SystemExit("--taught and --reworded need --teacher, which they are about")
        return None
    if args.teacher.is_dir():
        raise SystemExit(f"{args.teacher} is a folder, not a file that `teach` wrote")
    reader = load_reader(args.teacher).to(args.device).eval()
    reader.bf16 = args.bf16
    return Teacher(reader, near_words(model.word.weight))


def ranges_in(model: Model, batches: list[Batch]) -> Ranges:
    """Returns the ranges of the products' inputs in batches, one after the other since they are large; none if there
    are no batches."""
    found = [ranges_of(inputs_in(model, [batch]), PERCENTILE) for batch in batches]
    return {name: widest([ranges[name] for ranges in found]) for name in (found[0] if found else ())}


def compute_as_int8(model: Model, args: argparse.Namespace, clock: Clock) -> None:
    """Makes the model compute as int8 will, with the ranges of the first batches, and writes these; changes nothing if
    the time is over before there is a batch."""
    ranges = ranges_in(model, list(islice(stream(args.batches, args.device, clock.is_over, args.first), RANGE_BATCHES)))
    if ranges:
        write_ranges(args.out / RANGES, ranges)
        simulate(model, ranges)


def run(args: argparse.Namespace) -> None:
    """Trains until the time is over, and writes the averaged weights, with `--int8` also the ranges."""
    check_folders(args.batches, args.check)
    torch.manual_seed(args.seed)
    prepare_device()
    model = load_model(args.start).to(args.device)
    teacher = teacher_of(args, model)
    args.out.mkdir(parents=True, exist_ok=True)
    clock = Clock(args.seconds)
    if args.int8:
        compute_as_int8(model, args, clock)
    optimizer = make_optimizer(model.train(), Rates(args.rate, args.head_rate, args.layer_decay, args.frozen))
    # A GPU computes int8 in float32: bfloat16 cannot tell all of the 256 places of an input apart.
    bf16 = not args.int8 if args.device == "cuda" else args.bf16
    average, log = Average(model, args.average), Log(args.out / "log.jsonl")
    for labelled, batch in batches_of(args, teacher, clock):
        done = clock.done()
        if done >= 1:
            break
        found = learned(model, batch, args.consistency, args.eye, bf16)
        update(optimizer, found.loss, share_at(done, WARM_UP, DECAY, args.last_rate))
        log.add(labelled, found.logits, found.loss, done)
        average.update(model, log.step)
    warn_without_steps(log, args.batches, args.first)
    model.load_state_dict(average.weights)
    save_model(model, args.out / WEIGHTS)
    if args.check:
        print(json.dumps(checked(model.eval(), read_all(args.check, args.device))))
