"""Reads the weights of a served folder, so that training can start from a shipped model."""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from ..data.files import object_in
from .int8_matmul import MAX_PAIR, Ranges, largest_pair

# The names of the heads in the graph, and in the model.
HEADS = {
    "head.dense": "dense",
    "head.norm": "dense_norm",
    "head.score": "score",
    "similar.state": "similar_state",
    "similar.option": "similar_option",
}
# The kinds of a part's weights, which are the last word of their names.
KINDS = ("weight", "bias", "growth", "offset")


def served_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Returns the weights of a folder's graph in fp32, under the model's names; int8 ones are multiplied out."""
    stored, config = stored_arrays(folder), object_in(folder / "config.json")
    weights: dict[str, torch.Tensor] = {}
    if "sharpness" in stored:
        # Each layer has the factors of its queries, keys and values: one number per head, repeated for each of its
        # dimensions.
        queries = stored["sharpness"].reshape(config["layers"], 3, config["heads"], -1)[:, 0, :, 0]
        weights |= {f"layers.{i}.sharpness": torch.from_numpy(np.array(row)) for i, row in enumerate(queries)}
    for name, value in stored.items():
        owner, _, kind = name.rpartition(".")
        if kind not in KINDS and name != "similar.scale":
            continue
        if value.dtype == np.int8:
            scale = stored[f"{owner}.scale"]
            value = value * (scale[:, None] if owner == "word" else scale)
        if kind == "weight" and value.ndim == 2 and owner not in ("word", "position", "kind"):
            value = value.T
        model_name = "similar_scale" if name == "similar.scale" else f"{HEADS.get(owner, owner)}.{kind}"
        weights[model_name] = torch.from_numpy(np.array(value, np.float32, order="C"))
    return weights


def served_ranges(folder: Path) -> Ranges:
    """Returns the input range of each of the folder's int8 products, by its name; none if the folder is not in int8."""
    stored = stored_arrays(folder)
    products = [name.removesuffix(".x_scale") for name in stored if name.endswith(".x_scale")]
    grids = {name: (float(stored[f"{name}.x_scale"]), int(stored[f"{name}.x_zero"])) for name in products}
    return {name: (-zero * step, (255 - zero) * step) for name, (step, zero) in grids.items()}


def keep_integers(graph: onnx.ModelProto, folder: Path, inputs: bool) -> None:
    """Gives a graph that was made from a folder's weights the folder's own integers and scales; those of the products'
    inputs only with `inputs`.

    Weights that were multiplied out and rounded again are the same integers, but some of their scales differ in the
    last bit. Weights that can saturate are not copied, because the graph has them on another grid.
    """
    kinds = ("weight", "scale", "x_scale", "x_zero") if inputs else ("weight", "scale")
    stored = {tensor.name: tensor for tensor in onnx.load(str(folder / "model.onnx")).graph.initializer}
    in_int8 = [name for name, tensor in stored.items() if tensor.data_type == onnx.TensorProto.INT8]
    rounded = {name.removesuffix(".weight") for name in in_int8}
    saturating = {owner for owner in rounded if f"{owner}.x_scale" in stored and saturates(stored[f"{owner}.weight"])}
    for tensor in graph.graph.initializer:
        owner, _, kind = tensor.name.rpartition(".")
        own = stored.get(tensor.name)
        if own is None or owner not in rounded or kind not in kinds or own.data_type != tensor.data_type:
            continue
        if owner not in saturating or kind not in ("weight", "scale"):
            tensor.CopyFrom(own)


def saturates(weight: onnx.TensorProto) -> bool:
    """Whether a product's stored weights [inputs, outputs] have a pair of neighbours that can saturate; folders up to
    0.7.0 have such."""
    integers = torch.from_numpy(numpy_helper.to_array(weight).T.astype(np.float32))
    return bool((largest_pair(integers) > MAX_PAIR).any())


def stored_arrays(folder: Path) -> dict[str, np.ndarray]:
    """Returns the arrays that a folder's graph stores, under today's names."""
    tensors = onnx.load(str(folder / "model.onnx")).graph.initializer
    return {our_name(tensor.name): numpy_helper.to_array(tensor) for tensor in tensors}


def our_name(name: str) -> str:
    """Returns a weight's name in today's graphs."""
    if name.startswith("layer") and not name.startswith("layers."):
        name = "layers." + name.removeprefix("layer")
    return name.replace("embed.norm", "norm").replace("type.weight", "kind.weight")
