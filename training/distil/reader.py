"""A larger encoder, all-mpnet-base-v2, that learns to answer questions in the layout of the small model.

It is no faster than it has to be, so more tokens see each other than in the small model: a question sees the whole
state, and an option sees the other options of its question. The state does not see the questions, so that it is encoded
once for all of them, as in the small model.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from ..data.layout import CLS, MASK, SEP
from ..data.layout import PAD as OUR_PAD
from ..model.batches import Batch
from ..model.weights import tensors_in
from ..similarity.teacher import END, LAYERS, PAD, POSITIONS, START, VOCABULARY, WIDTH, Encoder

# The same words have the same order in both vocabularies; the larger encoder has four special tokens before them.
BEFORE = 4
OWN = {CLS: START, SEP: END, OUR_PAD: PAD, MASK: VOCABULARY - 1}
DROPOUT = 0.1


class Reader(nn.Module):
    """Scores every option of every question of a batch, from the option's marker. A GPU multiplies in bfloat16, a CPU
    only if `bf16` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.bf16 = False
        self.encoder = Encoder()
        self.dense, self.dense_norm, self.score = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Returns the logits [questions, options], with a large negative number in places without an option."""
        with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=batch.ids.is_cuda or self.bf16):
            x = self.encoder.encode(ids_of(batch), places_of(batch), sees_of(batch), DROPOUT)
            marked = F.dropout(x.flatten(0, 1)[batch.markers], DROPOUT, self.training)
            scores = self.score(self.dense_norm(F.gelu(self.dense(marked)))).squeeze(-1)
        return scores.float().masked_fill(~batch.real, -1e4)


def ids_of(batch: Batch) -> torch.Tensor:
    """Returns the tokens of a batch in the larger encoder's vocabulary [rows, length]."""
    ids = batch.ids + BEFORE
    for ours, own in OWN.items():
        ids = torch.where(batch.ids == ours, own, ids)
    return ids


def places_of(batch: Batch) -> torch.Tensor:
    """Returns the positions of the tokens [rows, length]: every question follows the state, as if it were alone with
    it."""
    index = torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)
    changes = torch.ones_like(batch.part, dtype=torch.bool)
    changes[:, 1:] = batch.part[:, 1:] != batch.part[:, :-1]
    first = torch.where(changes, index, 0).cummax(1).values
    state = (batch.part > 0).sum(1, keepdim=True)
    return torch.where(batch.part > 0, index, state + index - first).clamp(max=POSITIONS - PAD - 2)


def sees_of(batch: Batch) -> torch.Tensor:
    """Returns which tokens see which [rows, 1, length, length]."""
    part, key = batch.part[:, :, None], batch.part[:, None, :]
    return ((part == key) | ((part != 0) & (key > 0)))[:, None]


def depth_of(name: str) -> int:
    """Returns the number of layers above a weight; -1 in the head."""
    if not name.startswith("encoder."):
        return -1
    return LAYERS - 1 - int(name.split(".")[2]) if name.startswith("encoder.layers.") else LAYERS


def save_reader(reader: Reader, path: Path) -> None:
    """Writes the weights in fp16."""
    save_file({name: value.detach().half().contiguous() for name, value in reader.state_dict().items()}, path)


def load_reader(path: Path) -> Reader:
    """Returns a reader: a trained one from its file, or an untrained one from the folder of the encoder."""
    reader = Reader()
    if path.is_dir():
        reader.encoder.read(path)
    else:
        weights = {name: value.float() for name, value in tensors_in(path).items()}
        if weights.keys() != reader.state_dict().keys():
            raise ValueError(f"{path}: no file of `teach`")
        reader.load_state_dict(weights)
    return reader
