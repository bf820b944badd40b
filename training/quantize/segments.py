"""The quantized products of a graph, and the part of the graph that leads from one to the next."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Quantized:
    """A product's input: its name in floats and in integers, and the names of its scale and its zero point."""

    floats: str
    integers: str
    step: str
    zero: str


@dataclass(frozen=True)
class Segment:
    """A part of a graph as a graph of its own, with its inputs and the outputs that it computes for later parts."""

    graph: onnx.ModelProto
    inputs: list[str]
    outputs: list[str]


def quantized(model: onnx.ModelProto) -> list[Quantized]:
    """Returns the inputs of the int8 products, in the order of the graph."""
    nodes = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    return [Quantized(node.input[0], node.output[0], node.input[1], node.input[2]) for node in nodes]


def needed_later(model: onnx.ModelProto) -> set[str]:
    """Returns the inputs of int8 products that are also read elsewhere, in floats."""
    read = {name for node in model.graph.node if node.op_type != "QuantizeLinear" for name in node.input}
    return {product.floats for product in quantized(model)} & read


def stored(model: onnx.ModelProto, name: str) -> np.ndarray:
    """Returns the value of a weight or a constant."""
    return numpy_helper.to_array(next(tensor for tensor in model.graph.initializer if tensor.name == name))


def store(model: onnx.ModelProto, name: str, value: np.ndarray) -> None:
    """Gives a weight or a constant another value."""
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == name)
    weight.CopyFrom(numpy_helper.from_array(value, name))


def ancestors(model: onnx.ModelProto, wanted: str, given: Collection[str]) -> tuple[set[str], list[onnx.NodeProto]]:
    """Returns the names that lead from the `given` names to the `wanted` one, and the nodes between, in the order of
    the graph."""
    reached, body = {wanted}, []
    for node in reversed(model.graph.node):
        if any(name in reached and name not in given for name in node.output):
            reached.update(name for name in node.input if name)
            body.append(node)
    return reached, body[::-1]


def segment(model: onnx.ModelProto, wanted: str, floats: Collection[str], integers: Collection[str]) -> Segment:
    """Returns the part of the graph that computes `wanted`, and the keys and values on the way, from known names:
    inputs of the graph, floats and integers."""
    given = {i.name: i for i in model.graph.input}
    given |= {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in floats}
    given |= {name: helper.make_tensor_value_info(name, TensorProto.UINT8, None) for name in integers}
    reached, body = ancestors(model, wanted, given)
    made = {name for node in body for name in node.output}
    outputs = [wanted, *(output.name for output in model.graph.output if output.name in made)]
    inputs = [value for name, value in given.items() if name in reached]
    weights = [tensor for tensor in model.graph.initializer if tensor.name in reached]
    described = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(body, "segment", inputs, described, weights)
    whole = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return Segment(whole, [value.name for value in inputs], outputs)
