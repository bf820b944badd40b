"""A larger sentence encoder, all-mpnet-base-v2 (110M), whose cosines are soft answers for the small model. It is plain
PyTorch, and reads a folder with its weights and tokenizer."""

import math
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F
from tqdm import tqdm

from ..model.weights import tensors_in

WIDTH, HEADS, LAYERS, INNER, BUCKETS, FARTHEST = 768, 12, 12, 3072, 32, 128
VOCABULARY, POSITIONS, START, PAD, END = 30527, 514, 0, 1, 2
EPSILON = 1e-5


class Layer(nn.Module):
    """A post-norm transformer layer whose attention is biased by distance."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: torch.Tensor, bias: torch.Tensor, dropout: float = 0.0) -> torch.Tensor:
        """Returns the layer's output [rows, length, width]; `dropout` of what the layer adds is left out in
        training."""
        rows, length, _ = x.shape
        query, key, value = (
            part(x).view(rows, length, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        mixed = self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        x = self.norm1(x + F.dropout(mixed, dropout, self.training))
        return self.norm2(x + F.dropout(self.down(F.gelu(self.up(x))), dropout, self.training))


class Encoder(nn.Module):
    """The encoder of all-mpnet-base-v2."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.position, self.norm = (
            nn.Embedding(VOCABULARY, WIDTH),
            nn.Embedding(POSITIONS, WIDTH),
            nn.LayerNorm(WIDTH, EPSILON),
        )
        self.distance = nn.Embedding(BUCKETS, HEADS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def read(self, folder: Path) -> None:
        """Loads the weights of the archive's folder; raises ValueError, which names the file, if they are others."""
        path = folder / "model.safetensors"
        try:
            self.load_state_dict(named(tensors_in(path)))
        except (KeyError, RuntimeError) as error:
            raise ValueError(f"{path}: not the weights of all-mpnet-base-v2") from error

    def encode(self, ids: torch.Tensor, places: torch.Tensor, sees: torch.Tensor, dropout: float = 0.0) -> torch.Tensor:
        """Returns the last layer's output [rows, length, width] for tokens at `places` [rows, length], each of which
        sees others [rows, 1, 1 or length, length]."""
        x = self.norm(self.word(ids) + self.position(places + PAD + 1))
        bias = self.distance(buckets(places)).permute(0, 3, 1, 2).masked_fill(~sees, -1e9)
        # Fused attention asks for the type of the products, row after row.
        device = x.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        bias = bias.to(dtype, memory_format=torch.contiguous_format)
        for layer in self.layers:
            x = layer(x, bias, dropout)
        return x


class Teacher(nn.Module):
    """Sentence embeddings of length 1: the mean of the last layer's output."""

    def __init__(self, folder: Path, longest: int) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.encoder.read(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(longest)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the embeddings of rows of ids, padded with `PAD` [rows, width]."""
        real = ids != PAD
        places = torch.where(real, torch.arange(ids.shape[1]), -1)
        x = self.encoder.encode(ids, places, real[:, None, None, :])
        return F.normalize((x.float() * real[..., None]).sum(1) / real.sum(1, keepdim=True), dim=-1)


def buckets(places: torch.Tensor) -> torch.Tensor:
    """Returns the bucket of each distance between two tokens at places [rows, length] as [rows, length, length]. Half
    of the buckets are for tokens behind; near distances have a bucket each, far ones share buckets by their
    logarithm."""
    behind = places[:, :, None] - places[:, None, :]
    half, near = BUCKETS // 2, BUCKETS // 4
    far = behind.abs()
    logarithmic = near + (far.clamp(min=1).float().div(near).log() / math.log(FARTHEST / near) * (half - near)).long()
    return half * (behind < 0) + torch.where(far < near, far, logarithmic.clamp(max=half - 1))


def named(loaded: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the archive's weights under this module's names."""
    loaded = {name.removeprefix("mpnet."): value for name, value in loaded.items()}
    names = {
        "word": "embeddings.word_embeddings",
        "position": "embeddings.position_embeddings",
        "norm": "embeddings.LayerNorm",
    }
    places = {
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "out": "attention.attn.o",
        "norm1": "attention.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm2": "output.LayerNorm",
    }
    names |= {
        f"layers.{i}.{ours}": f"encoder.layer.{i}.{theirs}" for i in range(LAYERS) for ours, theirs in places.items()
    }
    found = {
        f"{ours}.{kind}": loaded[f"{theirs}.{kind}"]
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
        if f"{theirs}.{kind}" in loaded
    }
    return found | {"distance.weight": loaded["encoder.relative_attention_bias.weight"]}


@torch.no_grad()
def taught(
    folder: Path, texts: list[str], longest: int = 128, max_tokens: int = 8192, bf16: bool = False
) -> torch.Tensor:
    """Returns the teacher's embeddings of texts, each of length 1 [texts, width]; only the first `longest` tokens of a
    text are read."""
    teacher, found = Teacher(folder, longest).eval(), torch.empty(len(texts), WIDTH)
    encoded = [row.ids for row in teacher.tokenizer.encode_batch(texts)]
    order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
    bar = tqdm(total=sum(map(len, encoded)), desc="teacher", mininterval=5, leave=False)
    while order:
        count = max(1, max_tokens // max(len(encoded[order[min(len(order), 512) - 1]]), 1))
        places, order = order[:count], order[count:]
        length = max(len(encoded[i]) for i in places)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            found[places] = teacher(
                torch.tensor([encoded[i] + [PAD] * (length - len(encoded[i])) for i in places])
            ).float()
        bar.update(sum(len(encoded[i]) for i in places))
    return found
