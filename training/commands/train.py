"""`train`: makes a checkpoint from prepared rows."""

import argparse
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tqdm import tqdm

from ..data.rows import TRAIN, Row, read_rows
from ..distil.crossed import partly_crossed
from ..model.batches import Batch, by_length, collate, mixed
from ..model.encoder import LAYERS, Model
from ..model.int8_matmul import Ranges
from ..model.served import served_ranges
from ..model.weights import load_model
from ..quantize.ranges import PERCENTILE, RANGES, inputs_of, ranges_of, read_ranges, simulate, write_ranges
from ..recipes.mixture import Mixture
from ..similarity.eye import fit_similarity, texts_of, widen
from ..train.checkpoint import (
    STATE,
    STEPS,
    Average,
    Option,
    Plan,
    Progress,
    Run,
    refuse_other_options,
    resume,
    save,
)
from ..train.log import Log
from ..train.loss import Kept, keeping, learned
from ..train.optimizer import Rates, make_optimizer, share_of_rate, update
from .values import number, whole

# The groups whose inputs give the ranges of a run in int8.
RANGE_GROUPS = 512
# The steps after which a line of the log is written.
LOGGED_STEPS = 50
# How many times as often a source may be drawn that is corrected.
FACTORS = (0.01, 100)
# The options that may change when a run goes on: where it reads and writes, how long it is, and what computes it; and
# what the parser of all commands adds.
FREE = frozenset({"rows", "out", "steps", "decay", "save_seconds", "device", "threads", "command", "run"})
DECAY_HELP = (
    "steps at the end in which the rate falls, at most half of all; before it is constant (default: %(default)s)"
)
EYE_HELP = (
    "weight of the loss of the similarity term alone, on what the sentence encoders say is alike (default: %(default)s)"
)
FIT_EYE_HELP = "begin with a similarity term fitted to the base model's embeddings, instead of that of --start"
FROZEN_HELP = "layers from the bottom that stay as they are, with the embeddings; 2 save a quarter of the time"
INT8_HELP = (
    "compute as int8 will, with the ranges of the --start folder or of the first groups; they are written to "
    f"{RANGES} for `export --ranges`"
)
KEEP_HELP = (
    "share of an earlier model's answers in what is learned, so that what it can do is not lost (default: %(default)s)"
)
CROSSED_HELP = (
    "share of groups that ask about one text what was asked about another, which only the model of --keep answers "
    "(default: %(default)s)"
)
CORRECT_HELP = (
    "sources that are learned from their labels alone, each with a factor of how often it is drawn (default: 1), such "
    'as "comments=3" or "series_*=1.3"; of all others --keep keeps the answers wherever there are some'
)
BF16_HELP = "products in bfloat16: twice as fast on processors with AVX-512 BF16 or AMX, and on GPUs; slower on others"


def correction(text: str) -> str:
    """Returns a value of --correct; refuses one without a source, or with a factor that is none."""
    source, equals, factor = text.partition("=")
    if not source:
        raise argparse.ArgumentTypeError(f"{text!r} names no source")
    if equals:
        number(*FACTORS)(factor)
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--rows", type=Path, required=True, help="folder that `data` wrote")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for checkpoints and the log; a run found there goes on"
    )
    parser.add_argument("--start", type=Path, help="checkpoint to start from (default: the base model)")
    parser.add_argument(
        "--base-share", type=number(0, 1), default=0.0, help="share of the base model's weights mixed into --start"
    )
    parser.add_argument("--fit-eye", action="store_true", help=FIT_EYE_HELP)
    parser.add_argument(
        "--steps",
        type=whole(0),
        default=20_000,
        help=f"steps in all; a number in {STEPS} of --out overrides it while the run goes",
    )
    parser.add_argument(
        "--warm-up", type=whole(0), default=200, help="steps in which the rate rises (default: %(default)s)"
    )
    parser.add_argument("--decay", type=whole(0), default=4000, help=DECAY_HELP)
    parser.add_argument("--eye", type=number(0), default=0.5, help=EYE_HELP)
    parser.add_argument(
        "--batch-tokens", type=whole(1), default=2048, help="padded tokens in a step: more needs more memory"
    )
    parser.add_argument(
        "--pool",
        type=whole(1),
        default=512,
        help="groups that are sorted by length together: more waste less on padding",
    )
    parser.add_argument(
        "--rate", type=number(0), default=8e-5, help="peak learning rate of the last layer (default: %(default)s)"
    )
    parser.add_argument("--head-rate", type=number(0), default=2e-4)
    parser.add_argument(
        "--layer-decay", type=number(0, 1), default=0.9, help="each layer's rate is this share of the one above"
    )
    parser.add_argument("--frozen", type=whole(0, LAYERS), default=0, help=FROZEN_HELP)
    parser.add_argument(
        "--consistency", type=number(0), default=0.7, help="weight of the term that makes tied answers fit together"
    )
    parser.add_argument("--keep", type=float, default=0.0, help=KEEP_HELP)
    parser.add_argument("--crossed", type=float, default=0.0, help=CROSSED_HELP)
    parser.add_argument(
        "--correct",
        nargs="+",
        action="extend",
        type=correction,
        default=[],
        metavar="SOURCE[=FACTOR]",
        help=CORRECT_HELP,
    )
    parser.add_argument("--keep-of", type=Path, help="the model whose answers --keep takes (default: that of --start)")
    parser.add_argument(
        "--average", type=number(0, 1), default=0.998, help="decay of the running average of the weights"
    )
    parser.add_argument("--save-seconds", type=number(0), default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--int8", action="store_true", help=INT8_HELP)
    parser.add_argument("--bf16", action="store_true", help=BF16_HELP)
    parser.add_argument("--threads", type=whole(0), default=0, help="CPU threads (default: all)")


def batches(
    mixture: Mixture, progress: Progress, pool: int, max_tokens: int, share_crossed: float = 0.0
) -> Iterator[Batch]:
    """Yields batches without end from the progress of a run, and advances the progress."""
    while True:
        groups = partly_crossed(mixture, progress.pool, pool, share_crossed)
        rows = mixed(list(by_length(groups, max_tokens)), progress.pool)
        for group in rows[progress.batch :]:
            progress.batch += 1
            yield collate(group)
        progress.pool, progress.batch = progress.pool + 1, 0


def ranges_of_run(model: Model, mixture: Mixture, args: argparse.Namespace) -> Ranges:
    """Returns the ranges that the run began with: those of the folder that it starts from, or those that the first
    groups need."""
    path = args.out / RANGES
    if not path.exists():
        served = served_ranges(args.start) if args.start and args.start.is_dir() else {}
        write_ranges(path, served or ranges_of(inputs_of(model, mixture.pool(0, RANGE_GROUPS)), PERCENTILE))
    return read_ranges(path)


def options_of(args: argparse.Namespace) -> dict[str, Option]:
    """Returns the options with which a run has to go on, by their names."""
    kept = {f"--{name.replace('_', '-')}": value for name, value in vars(args).items() if name not in FREE}
    return {name: worded_option(value) for name, value in kept.items()}


def worded_option(value: Option | Path | list[str]) -> Option:
    """Returns an option's value as a run saves it."""
    if isinstance(value, list):
        return " ".join(value) or None
    return str(value) if isinstance(value, Path) else value


def rates_of(args: argparse.Namespace) -> Rates:
    """Returns the peak rates of a run."""
    return Rates(args.rate, args.head_rate, args.layer_decay, args.frozen)


def starting_model(args: argparse.Namespace, rows: list[Row]) -> Model:
    """Returns the model with the weights that the run begins with, or with the shape of those that are loaded later."""
    model = load_model(args.start, args.base_share)
    if args.fit_eye and (args.out / STATE).exists():
        widen(model)
    elif args.fit_eye:
        fit_similarity(model, texts_of(rows))
    return model


def earlier_model(args: argparse.Namespace) -> Model | None:
    """Returns the model whose answers are kept, if any are."""
    if args.correct and not args.keep:
        raise SystemExit("--correct needs --keep, which says what is learned from all other sources")
    if not 0 <= args.keep <= 1:
        raise SystemExit(f"--keep is {args.keep}, not 0 to 1")
    if not 0 <= args.crossed < 1 or (args.crossed and not args.keep):
        raise SystemExit(f"--crossed is {args.crossed}; it is less than 1, and needs --keep")
    if not args.keep:
        return None
    path = args.keep_of or args.start
    if path is None:
        raise SystemExit("--keep needs --start or --keep-of, the model whose answers are kept")
    return load_model(path).eval().to(args.device)


def corrected_sources(args: argparse.Namespace, mixture: Mixture) -> frozenset[str]:
    """Returns the names of the sources that are learned from their labels alone, and has the mixture draw them as often
    as --correct says."""
    found: frozenset[str] = frozenset()
    for text in args.correct:
        pattern, _, factor = text.partition("=")
        sources = mixture.multiply(pattern, float(factor or 1))
        if not sources:
            raise ValueError(f"--correct {text}: the mixture has no such source")
        found |= sources
    return found


def run(args: argparse.Namespace) -> None:
    """Trains until the planned steps are done; writes `checkpoint.safetensors` (the averaged weights) and the state for
    a resumed run."""
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing here reads what it has not written
    if args.threads:
        torch.set_num_threads(args.threads)
    options = options_of(args)
    refuse_other_options(args.out, options)
    earlier = earlier_model(args)
    rows = list(read_rows(args.rows / TRAIN))
    model, mixture = starting_model(args, rows), Mixture(rows, args.seed)
    kept = None if earlier is None else Kept(earlier, args.keep, corrected_sources(args, mixture))
    args.out.mkdir(parents=True, exist_ok=True)
    if args.int8:
        simulate(model, ranges_of_run(model, mixture, args))
    model.to(args.device)
    current = Run(model, Average(model, args.average), make_optimizer(model, rates_of(args)), options=options)
    resume(args.out, current)
    train(current, mixture, args, kept)
    save(args.out, current)


def train(current: Run, mixture: Mixture, args: argparse.Namespace, kept: Kept | None = None) -> None:
    """Makes the steps that are left, and saves the run now and then; ends the process if it is asked to stop. `kept`
    says whose answers are kept, if any are."""
    log, saved, stopped = Log(args.out / "log.jsonl"), time.monotonic(), stop_event()
    progress, plan = current.progress, Plan(args.out, args.steps)
    bar = tqdm(total=plan.steps(), initial=progress.step, desc="steps", mininterval=5)
    source = batches(mixture, progress, args.pool, args.batch_tokens, args.crossed)
    # A batch is counted when it is drawn, so none is drawn that no step needs: a longer run would go on without it.
    while progress.step < (steps := plan.steps()):
        bar.total, rate = steps, share_of_rate(progress.step, steps, args.warm_up, args.decay)
        step(current, next(source).to(args.device), rate, args, log, kept)
        bar.update()
        if progress.step % LOGGED_STEPS == 0 or progress.step >= steps or stopped.is_set():
            bar.set_postfix_str(log.write(progress.step, rate, current.model.similar_scale.item()))
        if time.monotonic() - saved > args.save_seconds or stopped.is_set():
            save(args.out, current)
            saved = time.monotonic()
        if stopped.is_set():
            raise SystemExit(f"stopped after step {progress.step}; the same command goes on")
    bar.close()


def stop_event() -> threading.Event:
    """Returns an event that is set when the process is asked to end; the current step is then finished and saved."""
    stopped = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    return stopped


def step(current: Run, batch: Batch, rate: float, args: argparse.Namespace, log: Log, kept: Kept | None = None) -> None:
    """Makes one update of the weights and of their average, at this share of the peak rates. The log counts what is
    right by the batch itself, whatever else an earlier model answers."""
    target = batch if kept is None else keeping(kept, batch, args.bf16)
    found = learned(current.model, target, args.consistency, args.eye, args.bf16)
    update(current.optimizer, found.loss, rate)
    log.add(batch, found.logits, found.cosines, found.loss.item())
    current.progress.step += 1
    current.average.update(current.model, current.progress.step)
