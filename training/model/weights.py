"""Reads and writes a model's weights: the base model's, those of checkpoints and those of served folders."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..data.layout import base_folder
from .encoder import LAYERS, SIMILARITY, TYPES, Model
from .served import served_weights

# A layer's names in the base model.
BASE = {
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}
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


def tensors_in(path: Path) -> dict[str, torch.Tensor]:
    """Returns the tensors of a safetensors file; raises ValueError, which names the file, if it is none."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path}: no safetensors file: {error}") from error


def base_weights() -> dict[str, torch.Tensor]:
    """Returns the base model's weights under this model's names; the marker head's are not in it."""
    base = {
        name.removeprefix("bert."): value for name, value in tensors_in(base_folder() / "model.safetensors").items()
    }
    named = {
        "word.weight": base["embeddings.word_embeddings.weight"],
        "position.weight": base["embeddings.position_embeddings.weight"],
        "kind.weight": base["embeddings.token_type_embeddings.weight"][:1].repeat(TYPES, 1),
    }
    for kind in ("weight", "bias"):
        named[f"norm.{kind}"] = base[f"embeddings.LayerNorm.{kind}"]
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}."
            parts = [base[f"{layer}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            named[f"layers.{i}.qkv.{kind}"] = torch.cat(parts)
            for ours, theirs in BASE.items():
                named[f"layers.{i}.{ours}.{kind}"] = base[f"{layer}{theirs}.{kind}"]
    return named


def checkpoint_weights(path: Path) -> dict[str, torch.Tensor]:
    """Returns the weights of a checkpoint in fp32, under this model's names; also reads the first model's."""
    loaded = {name: value.float() for name, value in tensors_in(path).items()}
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
    base = base_weights() if path is None or base_share else {}
    if path is None:
        weights = dict(base)
    else:
        weights = served_weights(path) if path.is_dir() else checkpoint_weights(path)
        # A model from before the similarity term answers as before, and can learn the term.
        weights.setdefault("similar_scale", torch.tensor(0.0))
    if base_share:
        mixed = [name for name in weights if name in base and "kind" not in name]
        weights |= {name: (1 - base_share) * weights[name] + base_share * base[name] for name in mixed}
    # The similarity term keeps the width that it was made with.
    similar = weights.get("similar_state.weight")
    model = Model(SIMILARITY if similar is None else len(similar))
    unknown = set(weights) - set(model.state_dict())
    if unknown:
        raise ValueError(f"{path}: unknown weights {sorted(unknown)}")
    model.load_state_dict(weights, strict=False)
    return model


def save_model(model: Model, path: Path) -> None:
    """Writes the weights in fp16."""
    save_file({name: value.detach().half().contiguous() for name, value in model.state_dict().items()}, path)
