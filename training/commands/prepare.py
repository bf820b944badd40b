"""`prepare`: writes batches from prepared rows, with several processes, for `teach` and `distil`."""

import argparse
import multiprocessing
import os
from pathlib import Path

import torch

from ..data.rows import HELD_OUT, TRAIN, read_rows
from ..distil.prepared import Sizes, batches_of, path_of, write
from ..recipes.mixture import Mixture
from .values import whole

BY_DEFAULT = Sizes()
# A file of this name in the folder ends the work.
STOP = "stop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--rows", type=Path, required=True, help="folder that `data` wrote")
    parser.add_argument(
        "--out", type=Path, required=True, help=f"folder for the batches; a file named {STOP} in it ends the work"
    )
    parser.add_argument("--pools", type=whole(1), default=2000, help="pools of groups to write (default: %(default)s)")
    parser.add_argument(
        "--size", type=whole(1), default=BY_DEFAULT.pool, help="groups of a pool (default: %(default)s)"
    )
    parser.add_argument("--batch-tokens", type=whole(1), default=BY_DEFAULT.tokens, help="padded tokens of a batch")
    parser.add_argument(
        "--crossed",
        type=float,
        default=BY_DEFAULT.crossed,
        help="share of groups that ask about one text what was asked about another (default: %(default)s)",
    )
    parser.add_argument("--held-out", action="store_true", help="the held-out rows, in wordings that no step uses")
    parser.add_argument("--processes", type=whole(1), default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--seed", type=int, default=0)


def work(mixture: Mixture, args: argparse.Namespace, first: int) -> None:
    """Writes every n-th pool that is not yet there."""
    torch.set_num_threads(1)
    sizes = Sizes(args.size, args.crossed, args.batch_tokens)
    for index in range(first, args.pools, args.processes):
        if (args.out / STOP).exists():
            return
        if not path_of(args.out, index).exists():
            write(args.out, index, batches_of(mixture, index, sizes))


def run(args: argparse.Namespace) -> None:
    """Writes the pools."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    rows = list(read_rows(args.rows / (HELD_OUT if args.held_out else TRAIN)))
    args.out.mkdir(parents=True, exist_ok=True)
    mixture = Mixture(rows, args.seed, args.held_out)
    # The processes share the rows, so they are forks.
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(mixture, args, first)) for first in range(args.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a process failed; the same command goes on")
