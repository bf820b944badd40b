"""The encoder and its heads, in plain PyTorch."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from .batches import Batch
from ..data.layout import CHUNK, base_folder
from .int8_matmul import Product
from .served import served_weights

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
        self.qkv, self.out = Product(WIDTH, 3 * WIDTH), Product(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = Product(WIDTH, INNER), Product(INNER, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.sharpness = nn.Parameter(torch.full((HEADS,), FIRST_SHARPNESS))

    def forward(
        self, x: torch.Tensor, allowed: torch.Tensor, growth: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the layer's output and its values, both [rows, length, width]; `growth` comes from `Model.growth`."""
        rows, length, _ = x.shape
        qkv = self.qkv(x)
        query, key, value = (part.view(rows, length, HEADS, HEAD_DIM).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
        query = query * (1 + growth * self.sharpness[:, None, None])
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        x = self.norm1(x + self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH)))
        return self.norm2(x + self.down(F.gelu(self.up(x)))), qkv[..., 2 * WIDTH :]


class Model(nn.Module):
    """Scores every option of every question of a batch."""

    def __init__(self, similarity: int = SIMILARITY) -> None:
        super().__init__()
        self.word, self.position, self.kind = (
            nn.Embedding(VOCABULARY, WIDTH),
            nn.Embedding(POSITIONS, WIDTH),
            nn.Embedding(TYPES, WIDTH),
        )
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.dense, self.dense_norm, self.score = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)
        # State and option start in one space, so that the term is a similarity from the first step.
        self.similar_state, self.similar_option = nn.Linear(WIDTH, similarity), nn.Linear(WIDTH, similarity)
        nn.init.orthogonal_(self.similar_state.weight)
        self.similar_option.load_state_dict(self.similar_state.state_dict())
        self.similar_scale = nn.Parameter(torch.tensor(2.0))
        self.act = nn.Linear(WIDTH + ACT_FEATURES, 2)
        nn.init.zeros_(self.act.weight)

    def encode(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the last layer's output and values, both [rows, length, width]."""
        x = self.norm(self.word(batch.ids) + self.position(batch.positions) + self.kind(batch.types))
        values, growth = x, self.growth(batch)
        for layer in self.layers:
            x, values = layer(x, batch.allowed, growth)
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
        return self.logits(*self.encode(batch), batch)

    def logits(self, x: torch.Tensor, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Returns the logits from the results of `encode`."""
        return self.weighed(x, self.cosines(values, batch), batch)

    def weighed(self, x: torch.Tensor, cosines: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Returns the logits from the last layer's output and the result of `cosines`."""
        marked = x.flatten(0, 1)[batch.markers]
        scores = self.score(self.dense_norm(F.gelu(self.dense(marked)))).squeeze(-1) + self.similar_scale * cosines
        return scores.float().masked_fill(~batch.real, -1e4)

    def cosines(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Returns the cosine of the pooled state and each pooled option [questions, options]; 0 if there is no
        state."""
        length = batch.ids.shape[1]
        row = batch.markers[:, :1] // length
        own = (batch.part[row] == batch.part.flatten()[batch.markers][..., None]) & (
            batch.option[row] == batch.option.flatten()[batch.markers][..., None]
        )
        state = batch.part > 0
        pooled_state = pool(state[:, None].float(), values).squeeze(1)[row.squeeze(1)]
        pooled_option = pool(own.float(), values[row.squeeze(1)])
        cosine = F.cosine_similarity(
            self.similar_option(pooled_option).float(), self.similar_state(pooled_state)[:, None].float(), dim=-1
        )
        return cosine * state.any(1)[row]


def pool(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Returns the mean of values [rows, length, width] over each set of tokens [rows, sets, length]; 0 for an empty
    set."""
    return weights @ values / weights.sum(-1, keepdim=True).clamp(min=1)


def base_weights() -> dict[str, torch.Tensor]:
    """Returns the base model's weights under this model's names; the marker head's are not in it."""
    base = {name.removeprefix("bert."): value for name, value in load_file(base_folder() / "model.safetensors").items()}
    named = {
        "word.weight": base["embeddings.word_embeddings.weight"],
        "position.weight": base["embeddings.position_embeddings.weight"],
        "kind.weight": base["embeddings.token_type_embeddings.weight"][:1].repeat(TYPES, 1),
    }
    places = {
        "out": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm2": "output.LayerNorm",
    }
    for kind in ("weight", "bias"):
        named[f"norm.{kind}"] = base[f"embeddings.LayerNorm.{kind}"]
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}."
            parts = [base[f"{layer}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            named[f"layers.{i}.qkv.{kind}"] = torch.cat(parts)
            named |= {f"layers.{i}.{ours}.{kind}": base[f"{layer}{theirs}.{kind}"] for ours, theirs in places.items()}
    return named


# The names in the first model's checkpoint.
FIRST = {
    "pos": "position",
    "typ": "kind",
    "ln": "norm",
    "ln1": "norm1",
    "ln2": "norm2",
    "o": "out",
    "h1": "dense",
    "hln": "dense_norm",
    "h2": "score",
}


def checkpoint_weights(path: Path) -> dict[str, torch.Tensor]:
    """Returns the weights of a checkpoint in fp32, under this model's names; also reads the first model's."""
    loaded = {name: value.float() for name, value in load_file(path).items()}
    if "pos.weight" not in loaded:
        return loaded
    weights = {".".join(FIRST.get(part, part) for part in name.split(".")): value for name, value in loaded.items()}
    # The first model's act head was not trained.
    return {name: value for name, value in weights.items() if not name.startswith("act")}


def load_model(path: Path | None = None, base_share: float = 0.0) -> Model:
    """Returns a model with the weights of a checkpoint or of a served folder, averaged with the base model's by
    `base_share`; the base model if there is no path.

    Weights that neither has keep their initial values.
    """
    base = base_weights()
    if path is None:
        weights = dict(base)
    else:
        weights = served_weights(path) if path.is_dir() else checkpoint_weights(path)
        # A model from before the similarity term answers as before, and can learn the term.
        weights.setdefault("similar_scale", torch.tensor(0.0))
    if base_share:
        weights |= {
            name: (1 - base_share) * value + base_share * base[name]
            for name, value in weights.items()
            if name in base and "kind" not in name
        }
    # The similarity term keeps the width that it was made with.
    model = Model(len(weights["similar_state.weight"]) if "similar_state.weight" in weights else SIMILARITY)
    unknown = set(weights) - set(model.state_dict())
    if unknown:
        raise ValueError(f"{path}: unknown weights {sorted(unknown)}")
    model.load_state_dict(weights, strict=False)
    return model


def save_model(model: Model, path: Path) -> None:
    """Writes the weights in fp16."""
    save_file({name: value.detach().half().contiguous() for name, value in model.state_dict().items()}, path)
