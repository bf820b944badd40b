"""Encoded groups as padded tensors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

import torch

from ..data.layout import PAD, Encoded


@dataclass(frozen=True)
class Ties:
    """The ties of a batch: `terms` [terms, 2], the tie of each term and its place in questions x options; `signs`
    [terms], 1 on one side and -1 on the other; `at_most` [ties].
    """

    terms: torch.Tensor
    signs: torch.Tensor
    at_most: torch.Tensor

    def to(self, device: str) -> "Ties":
        """Returns the same ties on a device."""
        return Ties(self.terms.to(device), self.signs.to(device), self.at_most.to(device))


@dataclass
class Batch:
    """Groups in one batch.

    Shapes: `ids` … `option` [rows, length]; `markers`, `real`, `target`, `meant` [questions, options], `markers` as
    indices into rows x length; `whole` and `kept` [questions].
    """

    ids: torch.Tensor
    positions: torch.Tensor
    types: torch.Tensor
    part: torch.Tensor
    option: torch.Tensor
    markers: torch.Tensor
    real: torch.Tensor
    target: torch.Tensor
    meant: torch.Tensor
    whole: torch.Tensor
    kept: torch.Tensor
    ties: Ties
    sources: list[str]

    def to(self, device: str) -> "Batch":
        """Returns the same batch on a device."""
        if device == "cpu":
            return self
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        return replace(self, ties=self.ties.to(device), **tensors)

    def is_labelled(self) -> torch.Tensor:
        """Returns which questions have a label [questions]."""
        return self.target.sum(-1) > 0

    def with_answers(self, answers: torch.Tensor, shares: torch.Tensor) -> "Batch":
        """Returns the same batch with shares [questions] of other answers [questions, options] in what is to be
        learned; what sentence encoders have answered stays."""
        shares = torch.where(self.whole, 0.0, shares)[:, None]
        return replace(self, target=(1 - shares) * self.target + shares * answers)

    def allowed(self) -> torch.Tensor:
        """Returns which tokens see which [rows, 1, length, length]: a chunk sees itself; a question sees the state, its
        own head and, inside an option, that option."""
        key_part, key_option = self.part[:, None, :], self.option[:, None, :]
        own = (self.part[:, :, None] == key_part) & ((key_option == 0) | (self.option[:, :, None] == key_option))
        # Padding (part 0) sees padding, because a row of the mask without a true value gives NaN.
        return (own | ((self.part[:, :, None] < 0) & (key_part > 0)))[:, None]

    def token_count(self) -> int:
        """Returns the number of tokens that are not padding."""
        return int((self.part != 0).sum())


def collate(rows: list[Encoded], multiple: int = 1) -> Batch:
    """Returns rows as one batch, padded to the longest row, or to the next multiple of a length that a device likes."""
    length = -(-max(len(row.ids) for row in rows) // multiple) * multiple

    def padded(name: str, filler: int = 0) -> torch.Tensor:
        return torch.tensor([getattr(row, name) + [filler] * (length - len(row.ids)) for row in rows])

    questions = [(number, row, i) for number, row in enumerate(rows) for i in range(len(row.markers))]
    width = max((len(row.markers[i]) for _, row, i in questions), default=0)
    markers = torch.zeros(len(questions), width, dtype=torch.long)
    real = torch.zeros(len(questions), width, dtype=torch.bool)
    target = torch.zeros(len(questions), width)
    meant = torch.zeros(len(questions), width, dtype=torch.bool)
    whole = torch.tensor([row.group.asked[i].whole for _, row, i in questions], dtype=torch.bool)
    kept = torch.tensor([row.group.asked[i].kept for _, row, i in questions], dtype=torch.bool)
    for place, (number, row, i) in enumerate(questions):
        count = len(row.markers[i])
        markers[place, :count] = torch.tensor(row.markers[i]) + number * length
        real[place, :count] = True
        target[place, :count] = torch.tensor(row.group.asked[i].target)
        meant[place, row.group.asked[i].meant] = True
    return Batch(
        ids=padded("ids", PAD),
        positions=padded("positions"),
        types=padded("types"),
        part=padded("part"),
        option=padded("option"),
        markers=markers,
        real=real,
        target=target,
        meant=meant,
        whole=whole,
        kept=kept,
        ties=ties_of(rows, width),
        sources=[row.group.source for _, row, _ in questions],
    )


def ties_of(rows: list[Encoded], width: int) -> Ties:
    """Returns the ties of rows whose questions have up to `width` options in their batch."""
    firsts = accumulate((len(row.markers) for row in rows), initial=0)
    ties = [(first, tie) for first, row in zip(firsts, rows) for tie in row.group.ties]
    places, signs = [], []
    for number, (first, tie) in enumerate(ties):
        for sign, side in ((1.0, tie.one), (-1.0, tie.other)):
            for question, place in side:
                places.append((number, (first + question) * width + place))
                signs.append(sign)
    terms = torch.tensor(places, dtype=torch.long).reshape(-1, 2)
    return Ties(terms, torch.tensor(signs), torch.tensor([tie.at_most for _, tie in ties], dtype=torch.bool))


def by_length(rows: list[Encoded], max_tokens: int) -> Iterator[list[Encoded]]:
    """Yields lists of rows of similar length; each list has at most `max_tokens` when padded, or one row."""
    held: list[Encoded] = []
    for row in sorted(rows, key=lambda row: len(row.ids)):
        if held and (len(held) + 1) * len(row.ids) > max_tokens:
            yield held
            held = []
        held.append(row)
    if held:
        yield held


def mixed(batches: list[list[Encoded]], pool: int) -> list[list[Encoded]]:
    """Returns the batches of a pool in an order that mixes their lengths: by a fixed stride, which depends only on the
    pool's number."""
    order = sorted(range(len(batches)), key=lambda i: (i * 7919 + pool) % len(batches))
    return [batches[place] for place in order]
