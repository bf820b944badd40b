"""`train`: makes a checkpoint from prepared rows."""

import argparse
import json
import signal
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Iterator

import torch
from torch.nn import functional as F
from tqdm import tqdm

from ..model.batches import Batch, by_length, collate
from ..train.checkpoint import STATE, STEPS, Average, Progress, planned_steps, resume, save
from .data import TRAIN
from ..similarity.eye import fit_similarity, texts_of, widen
from ..folder.graph import Ranges
from ..recipes.mixture import Mixture
from ..model.encoder import LAYERS, Model, load_model
from ..quantize.ranges import PERCENTILE, RANGES, inputs_of, ranges_of, read_ranges, simulate, write_ranges
from ..data.rows import read_rows
from ..model.served import served_ranges

# The rate of the single number for each head, which the rates of weights would hardly change.
SHARPNESS_RATE = 2e-3
# Tied probabilities that differ by less than this are drawn together by the square of their difference, others by the
# difference itself: a square alone hardly moves probabilities that differ by a tenth.
NEAR = 0.1
# The scale of the cosines by which the similarity term learns, as for those of the base model.
SHARP = 14.0
RANGE_GROUPS = 512
# The weight of the differences of whole distributions in the loss, and the smallest probability in them.
WHOLE, SMALLEST = 0.2, 1e-4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--rows", type=Path, required=True, help="folder that `data` wrote")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for checkpoints and the log; a run found there goes on"
    )
    parser.add_argument("--start", type=Path, help="checkpoint to start from (default: the base model)")
    parser.add_argument(
        "--base-share", type=float, default=0.0, help="share of the base model's weights mixed into --start"
    )
    parser.add_argument(
        "--fit-eye",
        action="store_true",
        help="begin with a similarity term fitted to the base model's embeddings, instead of that of --start",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=20_000,
        help=f"steps in all; a number in {STEPS} of --out overrides it while the run goes",
    )
    parser.add_argument("--warm-up", type=int, default=200, help="steps in which the rate rises (default: %(default)s)")
    parser.add_argument(
        "--decay",
        type=int,
        default=4000,
        help="steps at the end in which the rate falls, at most half of all; before it is constant (default: %(default)s)",
    )
    parser.add_argument(
        "--eye",
        type=float,
        default=0.5,
        help="weight of the loss of the similarity term alone, on what the sentence encoders say is alike (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-tokens", type=int, default=2048, help="padded tokens in a step: more needs more memory"
    )
    parser.add_argument(
        "--pool", type=int, default=512, help="groups that are sorted by length together: more waste less on padding"
    )
    parser.add_argument(
        "--rate", type=float, default=8e-5, help="peak learning rate of the last layer (default: %(default)s)"
    )
    parser.add_argument("--head-rate", type=float, default=2e-4)
    parser.add_argument(
        "--layer-decay", type=float, default=0.9, help="each layer's rate is this share of the one above"
    )
    parser.add_argument(
        "--frozen",
        type=int,
        default=0,
        help="layers from the bottom that stay as they are, with the embeddings; 2 save a quarter of the time",
    )
    parser.add_argument(
        "--consistency", type=float, default=0.7, help="weight of the term that makes tied answers fit together"
    )
    parser.add_argument("--average", type=float, default=0.998, help="decay of the running average of the weights")
    parser.add_argument("--save-seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--int8",
        action="store_true",
        help=f"compute as int8 will, with the ranges of the --start folder or of the first groups; they are written to {RANGES} for `export --ranges`",
    )
    parser.add_argument(
        "--bf16",
        action="store_true",
        help="products in bfloat16: twice as fast on processors with AVX-512 BF16 or AMX, and on GPUs; slower on others",
    )
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: all)")


def make_optimizer(model: Model, args: argparse.Namespace) -> torch.optim.Optimizer:
    """Returns AdamW with a rate per layer. Word embeddings stay as they are, because most words of a request never
    occur in training."""
    model.word.weight.requires_grad_(False)
    model.act.requires_grad_(False)
    if args.frozen:
        for part in (model.position, model.kind, model.norm, *model.layers[: args.frozen]):
            part.requires_grad_(False)
    by_rate: dict[float, list[torch.nn.Parameter]] = defaultdict(list)
    for name, value in model.named_parameters():
        if value.requires_grad:
            by_rate[rate_of(name, args)].append(value)
    groups = [{"params": values, "lr": rate, "peak": rate} for rate, values in sorted(by_rate.items())]
    return torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98), fused=True)


def rate_of(name: str, args: argparse.Namespace) -> float:
    """Returns a parameter's peak rate, by its depth."""
    if name.endswith(("sharpness", "similar_scale")):
        return SHARPNESS_RATE
    if name.startswith("layers."):
        return args.rate * args.layer_decay ** (LAYERS - 1 - int(name.split(".")[1]))
    if name.startswith(("position", "kind", "norm")):
        return args.rate * args.layer_decay**LAYERS
    return args.head_rate


def apart_everywhere(logits: torch.Tensor, target: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Returns the mean square difference of the logits and the target's logarithms, both without their means, over each
    question's options: it also distinguishes wrong options from very wrong ones."""
    gap = (logits - target.clamp(min=SMALLEST).log()).masked_fill(~real, 0.0)
    count = real.sum(-1, keepdim=True)
    return ((gap - gap.sum(-1, keepdim=True) / count).square() * real).sum(-1) / count.squeeze(-1)


def loss_of(logits: torch.Tensor, batch: Batch, consistency: float) -> torch.Tensor:
    """Returns the loss: cross-entropy, the differences of tied probabilities, and the square differences of the
    logarithms of whole distributions."""
    log_p = F.log_softmax(logits, dim=-1)
    loss = -(batch.target * log_p).sum(-1).mean()
    if batch.whole.any():
        loss = loss + WHOLE * apart_everywhere(
            logits[batch.whole], batch.target[batch.whole], batch.real[batch.whole]
        ).sum() / len(batch.target)
    if len(batch.at_most):
        terms = batch.signs * log_p.exp().flatten()[batch.tied[:, 1]]
        apart = torch.zeros(len(batch.at_most), device=terms.device).index_add(0, batch.tied[:, 0], terms)
        apart = torch.where(batch.at_most, apart.clamp(min=0), apart)
        loss = loss + consistency * F.smooth_l1_loss(apart, torch.zeros_like(apart), beta=NEAR, reduction="sum") / len(
            batch.target
        )
    return loss


def eye_loss(cosines: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Returns the loss of only the similarity term on which options are similar to the state, so that the term keeps
    the knowledge of sentence encoders whatever the rest of the model learns."""
    asked = batch.meant.any(-1)
    meant = batch.meant[asked]
    if not len(meant):
        return cosines.sum() * 0
    target = batch.target[asked].masked_fill(~meant, 0.0)
    target = target / target.sum(-1, keepdim=True).clamp(min=SMALLEST)
    logits = (SHARP * cosines[asked].float()).masked_fill(~meant, -1e4)
    apart = apart_everywhere(logits, target, meant)
    return (-(target * F.log_softmax(logits, dim=-1)).sum(-1) + WHOLE * apart).sum() / len(batch.target)


def batches(mixture: Mixture, progress: Progress, pool: int, max_tokens: int) -> Iterator[Batch]:
    """Yields batches without end from the progress of a run, and advances the progress."""
    while True:
        rows = list(by_length(mixture.pool(progress.pool, pool), max_tokens))
        # A fixed stride through the sorted lists mixes lengths, and depends only on the pool.
        order = sorted(range(len(rows)), key=lambda i: (i * 7919 + progress.pool) % len(rows))
        for place in order[progress.batch :]:
            progress.batch += 1
            yield collate(rows[place])
        progress.pool, progress.batch = progress.pool + 1, 0


class Log:
    """The losses and the accuracies by source since the last line of `log.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path, self.began, self.tokens, self.losses = path, time.monotonic(), 0, []
        self.right: dict[str, list[float]] = defaultdict(list)
        self.alike: list[float] = []

    def add(self, batch: Batch, logits: torch.Tensor, cosines: torch.Tensor, loss: float) -> None:
        """Counts a step."""
        asked = batch.meant.any(-1)
        best = cosines[asked].masked_fill(~batch.meant[asked], -2).argmax(-1)
        self.alike += (best == batch.target[asked].masked_fill(~batch.meant[asked], -1).argmax(-1)).tolist()
        self.tokens += batch.token_count()
        self.losses.append(loss)
        for source, right in zip(batch.sources, (logits.argmax(-1) == batch.target.argmax(-1)).tolist()):
            self.right[source].append(right)

    def write(self, step: int, rate: float, scale: float) -> str:
        """Writes a line, starts again, and returns a short form of the line. Its `alike` is how often the similarity
        term alone chooses as its teachers do; `scale` is the term's weight in a logit."""
        seconds, loss = time.monotonic() - self.began, sum(self.losses) / len(self.losses)
        accuracy = {source: round(sum(right) / len(right), 3) for source, right in sorted(self.right.items())}
        line = {
            "step": step,
            "loss": round(loss, 4),
            "tokens_per_second": round(self.tokens / seconds),
            "rate": round(rate, 4),
            "scale": round(scale, 3),
            "alike": round(sum(self.alike) / max(len(self.alike), 1), 3),
            "accuracy": accuracy,
        }
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        self.__init__(self.path)
        return f"loss {loss:.3f}, {line['tokens_per_second']} tokens/s"


def ranges_of_run(model: Model, mixture: Mixture, args: argparse.Namespace) -> Ranges:
    """Returns the ranges that the run began with: those of the folder that it starts from, or those that the first
    groups need."""
    path = args.out / RANGES
    if not path.exists():
        served = served_ranges(args.start) if args.start and args.start.is_dir() else {}
        write_ranges(path, served or ranges_of(inputs_of(model, mixture.pool(0, RANGE_GROUPS)), PERCENTILE))
    return read_ranges(path)


def run(args: argparse.Namespace) -> None:
    """Trains until the planned steps are done; writes `checkpoint.safetensors` (the averaged weights) and the state for
    a resumed run."""
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing here reads what it has not written
    if args.threads:
        torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    rows = list(read_rows(args.rows / TRAIN))
    model, mixture = load_model(args.start, args.base_share), Mixture(rows, args.seed)
    if args.fit_eye and (args.out / STATE).exists():
        widen(model)
    elif args.fit_eye:
        fit_similarity(model, texts_of(rows))
    if args.int8:
        simulate(model, ranges_of_run(model, mixture, args))
    model.to(args.device)
    optimizer, average = make_optimizer(model, args), Average(model, args.average)
    progress = resume(args.out, model, average, optimizer)
    log, saved, stopped = Log(args.out / "log.jsonl"), time.monotonic(), stop_event()
    bar = tqdm(total=planned_steps(args.out, args.steps), initial=progress.step, desc="steps", mininterval=5)
    for batch in batches(mixture, progress, args.pool, args.batch_tokens):
        steps = bar.total = planned_steps(args.out, args.steps)
        if progress.step >= steps:
            break
        rate = share_of_rate(progress.step, steps, args.warm_up, args.decay)
        step(model, optimizer, batch.to(args.device), rate, args, log)
        progress.step += 1
        average.update(model, progress.step)
        bar.update()
        if progress.step % 50 == 0:
            bar.set_postfix_str(log.write(progress.step, rate, model.similar_scale.item()))
        if time.monotonic() - saved > args.save_seconds or stopped.is_set():
            save(args.out, model, average, optimizer, progress)
            saved = time.monotonic()
        if stopped.is_set():
            raise SystemExit(f"stopped after step {progress.step}; the same command goes on")
    bar.close()
    save(args.out, model, average, optimizer, progress)


def stop_event() -> threading.Event:
    """Returns an event that is set when the process is asked to end; the current step is then finished and saved."""
    stopped = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    return stopped


def share_of_rate(step: int, steps: int, warm_up: int, decay: int) -> float:
    """Returns the share of the peak rate at a step: it rises in a straight line, stays constant, and falls to almost
    zero at the end, which may be changed during the run."""
    left = (steps - step) / max(1, min(decay, steps // 2))
    return max(min((step + 1) / max(1, min(warm_up, steps // 4)), left, 1.0), 1e-3)


def step(
    model: Model, optimizer: torch.optim.Optimizer, batch: Batch, rate: float, args: argparse.Namespace, log: Log
) -> None:
    """Makes one update of the weights."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * rate
    with torch.autocast(torch.device(args.device).type, torch.bfloat16, enabled=args.bf16):
        x, values = model.encode(batch)
        cosines = model.cosines(values, batch)
        logits = model.weighed(x, cosines, batch)
    loss = loss_of(logits, batch, args.consistency)
    if args.eye:
        loss = loss + args.eye * eye_loss(cosines, batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([value for value in model.parameters() if value.requires_grad], 1.0)
    optimizer.step()
    log.add(batch, logits, cosines, loss.item())
