"""`teach`: trains a larger encoder on prepared batches, so that it can answer for `distil`."""

import argparse
import json
from pathlib import Path

import torch

from ..distil.prepared import check_folders, read_all, stream
from ..distil.reader import Reader, depth_of, load_reader, save_reader
from ..distil.timed import Clock, Log, checked, prepare_device, warn_without_steps
from ..similarity.teacher import LAYERS
from ..train.loss import loss_of
from ..train.optimizer import adamw, share_at, update
from .values import number, whole

# Longer rows are not read by the larger encoder, which has 512 positions.
LONGEST = 640
# The shares of the time in which the rate rises and falls.
WARM_UP, DECAY = 0.06, 0.85
BF16_HELP = "compute products in bfloat16 on a CPU, too"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--batches", type=Path, required=True, help="folder that `prepare` writes, or has written")
    parser.add_argument(
        "--start", type=Path, required=True, help="folder of all-mpnet-base-v2, or a file of this command"
    )
    parser.add_argument("--out", type=Path, required=True, help="file for the weights")
    parser.add_argument("--seconds", type=number(0), required=True, help="how long to train")
    parser.add_argument("--rate", type=number(0), default=8e-5, help="peak learning rate of the last layer")
    parser.add_argument("--head-rate", type=number(0), default=5e-4)
    parser.add_argument(
        "--layer-decay", type=number(0, 1), default=0.95, help="each layer's share of the rate of the one above"
    )
    parser.add_argument(
        "--frozen", type=whole(0, LAYERS), default=0, help="layers from the bottom that stay as they are"
    )
    parser.add_argument("--bf16", action="store_true", help=BF16_HELP)
    parser.add_argument("--consistency", type=number(0), default=0.5, help="weight of what ties answers together")
    parser.add_argument("--first", type=whole(0), default=0, help="number of the first pool")
    parser.add_argument("--check", type=Path, help="folder with held-out batches to answer at the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")


def optimizer_of(reader: Reader, args: argparse.Namespace) -> torch.optim.Optimizer:
    """Returns AdamW with a rate per layer; words and distances stay as they are, with frozen layers also what these
    read."""
    encoder = reader.encoder
    for part in (encoder.word, encoder.distance, *encoder.layers[: args.frozen]):
        part.requires_grad_(False)
    if args.frozen:
        encoder.position.requires_grad_(False)
        encoder.norm.requires_grad_(False)

    def rate_of(name: str) -> float:
        depth = depth_of(name)
        return args.head_rate if depth < 0 else args.rate * args.layer_decay**depth

    return adamw((rate_of(name), value) for name, value in reader.named_parameters())


def run(args: argparse.Namespace) -> None:
    """Trains until the time is over, and writes the weights."""
    check_folders(args.batches, args.check)
    torch.manual_seed(args.seed)
    prepare_device()
    reader = load_reader(args.start).to(args.device).train()
    reader.bf16 = args.bf16
    args.out.parent.mkdir(parents=True, exist_ok=True)
    optimizer, log, clock = optimizer_of(reader, args), Log(args.out.with_suffix(".jsonl")), Clock(args.seconds)
    for batch in stream(args.batches, args.device, clock.is_over, args.first):
        done = clock.done()
        if done >= 1:
            break
        if batch.ids.shape[1] > LONGEST:
            continue
        logits = reader(batch)
        loss = loss_of(logits, batch, args.consistency)
        update(optimizer, loss, share_at(done, WARM_UP, DECAY))
        log.add(batch, logits, loss, done)
    warn_without_steps(log, args.batches, args.first)
    save_reader(reader, args.out)
    if args.check:
        reader.eval()
        held_out = read_all(args.check, args.device)
        print(json.dumps(checked(reader, [batch for batch in held_out if batch.ids.shape[1] <= LONGEST])))
