"""The encoder and its heads, in plain PyTorch."""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from ..data.layout import CHUNK
from .batches import Batch
from .int8_matmul import Int8Linear

WIDTH, HEADS, LAYERS, INNER = 384, 12, 6, 1536
HEAD_DIM = WIDTH // HEADS
VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
# 128 dimensions keep 74 % of the squares of the base model's embeddings, 256 keep 94 %.
SIMILARITY = 256
ACT_FEATURES = 4
# This is near the value that finds most in states of 2,000 to 16,000 tokens with weights that were trained without it.
FIRST_SHARPNESS = 0.4
# Up to this many tokens attention is unchanged, because sharpness improves long states at the cost of the calibration
# of short ones.
SHARP_FROM = 2 * CHUNK


class Layer(nn.Module):
    """A post-norm transformer layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = Int8Linear(WIDTH, 3 * WIDTH), Int8Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = Int8Linear(WIDTH, INNER), Int8Linear(INNER, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.sharpness = nn.Parameter(torch.full((HEADS,), FIRST_SHARPNESS))

    def forward(self, x: torch.Tensor, unseen: torch.Tensor, growth: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the layer's output and its values, both [rows, length, width]; `unseen` [rows, 1, length,
        length] is -inf where a token does not see another, else 0; `growth` comes from `Model.growth`."""
        rows, length, _ = x.shape
        qkv = self.qkv(x)
        parts = (part.view(rows, length, HEADS, HEAD_DIM) for part in qkv.chunk(3, dim=-1))
        query, key, value = (part.transpose(1, 2) for part in parts)
        query = query * (1 + growth * self.sharpness[:, None, None])
        mixed = attention(query, key, value, unseen)
        x = self.norm1(x + self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH)))
        return self.norm2(x + self.down(F.gelu(self.up(x)))), qkv[..., 2 * WIDTH :]


class NoneHead(nn.Linear):
    """Reads from a pooled option how much it means "none of these", and tells what such an option's logit has more.

    An option does not see the others. Each of them that does not fit takes some probability from "none of these", so
    its logit has to grow with their number.
    """

    def __init__(self) -> None:
        super().__init__(WIDTH, 1)
        self.growth, self.offset = nn.Parameter(torch.tensor(0.0)), nn.Parameter(torch.tensor(0.0))
        self.clear()

    @torch.no_grad()
    def clear(self) -> None:
        """Makes a head that adds nothing."""
        for value in self.parameters():
            value.zero_()

    def share(self, options: torch.Tensor) -> torch.Tensor:
        """Returns how much each option [..., width] means "none of these", 0 to 1 [...]."""
        return self(options).squeeze(-1).sigmoid()

    def added(self, options: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        """Returns what is added to the logits [questions, options], by the number of options [questions, 1]."""
        return (self.growth * count.log() - self.offset) * self.share(options)


class Scores(NamedTuple):
    """The results for the options of a batch: their logits and the similarity term's cosines [questions, options], and
    their pooled values [questions, options, width]."""

    logits: torch.Tensor
    cosines: torch.Tensor
    options: torch.Tensor


class Model(nn.Module):
    """Scores every option of every question of a batch."""

    def __init__(self, similarity: int = SIMILARITY) -> None:
        super().__init__()
        self.word, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.kind = nn.Embedding(TYPES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.dense, self.dense_norm, self.score = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)
        # State and option start in one space, so that the term is a similarity from the first step.
        self.similar_state, self.similar_option = nn.Linear(WIDTH, similarity), nn.Linear(WIDTH, similarity)
        nn.init.orthogonal_(self.similar_state.weight)
        self.similar_option.load_state_dict(self.similar_state.state_dict())
        self.similar_scale = nn.Parameter(torch.tensor(2.0))
        self.none = NoneHead()
        self.act = nn.Linear(WIDTH + ACT_FEATURES, 2)
        nn.init.zeros_(self.act.weight)

    def encode(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the last layer's output and values, both [rows, length, width]."""
        x = self.norm(self.word(batch.ids) + self.position(batch.positions) + self.kind(batch.types))
        values, growth = x, self.growth(batch)
        allowed = batch.allowed()
        unseen = torch.zeros_like(allowed, dtype=x.dtype).masked_fill(~allowed, float("-inf"))
        for layer in self.layers:
            x, values = layer(x, unseen, growth)
        return x, values

    def growth(self, batch: Batch) -> torch.Tensor:
        """Returns the logarithm of the number of state tokens over `SHARP_FROM` for a question's tokens [rows, 1,
        length, 1]; 0 if there are fewer, and in a state.

        Attention over more tokens is flatter, so the content of a single token is lost unless attention becomes sharper
        with their number.
        """
        count = (batch.part > 0).sum(1, keepdim=True)
        growth = (count / SHARP_FROM).clamp(min=1).log() * (batch.part < 0)
        return growth[:, None, :, None]

    def forward(self, batch: Batch) -> torch.Tensor:
        """Returns the logits [questions, options], with a large negative number in places without an option."""
        return self.scores(*self.encode(batch), batch).logits

    def scores(self, x: torch.Tensor, values: torch.Tensor, batch: Batch) -> Scores:
        """Returns the logits, and what they are made of, from the results of `encode`."""
        options, count = pooled_options(values, batch), batch.real.sum(-1, keepdim=True).clamp(min=1)
        cosines, marked = self.cosines(values, options, batch), x.flatten(0, 1)[batch.markers]
        head = self.score(self.dense_norm(F.gelu(self.dense(marked)))).squeeze(-1)
        logits = head + self.similar_scale * cosines + self.none.added(options, count)
        return Scores(logits.float().masked_fill(~batch.real, -1e4), cosines, options)

    def cosines(self, values: torch.Tensor, options: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Returns the cosine of the pooled state and each pooled option [questions, options]; 0 if there is no
        state."""
        row, state = row_of(batch), batch.part > 0
        pooled_state = pool(state[:, None].float(), values).squeeze(1)[row.squeeze(1)]
        of_options, of_states = self.similar_option(options), self.similar_state(pooled_state)[:, None]
        cosine = F.cosine_similarity(of_options.float(), of_states.float(), dim=-1)
        return cosine * state.any(1)[row]


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, unseen: torch.Tensor) -> torch.Tensor:
    """Returns the values [rows, heads, length, head dimension] that each token sees, mixed.

    PyTorch's fused attention takes most of the time of a training step on a processor, since it is made for longer
    rows; these products take a quarter of that. On a GPU the fused one is fast, and its long rows need little memory.
    """
    if query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value, unseen.to(query.dtype))
    scores = (query * HEAD_DIM**-0.5) @ key.transpose(-1, -2)
    return (scores + unseen.to(scores.dtype)).softmax(-1) @ value


def row_of(batch: Batch) -> torch.Tensor:
    """Returns the row of each question [questions, 1]."""
    return batch.markers[:, :1] // batch.ids.shape[1]


def pooled_options(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Returns the mean of the values over each option [questions, options, width]."""
    row = row_of(batch)
    of_part = batch.part[row] == batch.part.flatten()[batch.markers][..., None]
    of_option = batch.option[row] == batch.option.flatten()[batch.markers][..., None]
    return pool((of_part & of_option).float(), values[row.squeeze(1)])


def pool(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Returns the mean of values [rows, length, width] over each set of tokens [rows, sets, length]; 0 for an empty
    set."""
    return weights @ values / weights.sum(-1, keepdim=True).clamp(min=1)
