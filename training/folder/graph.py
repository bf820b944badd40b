"""The model as one ONNX graph of the `shared-state` layout, in fp32 or int8."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from ..model.encoder import HEAD_DIM, HEADS, LAYERS, SHARP_FROM, WIDTH, Model
from ..model.int8_matmul import Ranges, input_grid, row_integers, weight_integers

FUSED = "com.microsoft"
# The value of a constant, and of a node's attribute.
Value: TypeAlias = torch.Tensor | np.ndarray | float | Sequence[int] | Sequence[float]
Attribute = int | float


class Graph:
    """Nodes and weights while they are gathered; every method returns the name of the output that it added."""

    def __init__(self, ranges: Ranges | None, weight_bits: int) -> None:
        self.ranges, self.top = ranges, 2 ** (weight_bits - 1) - 1
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: Value, kind: type = np.float32) -> str:
        """Adds a weight or a constant, and returns its name."""
        array = value.detach().float().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value, kind)
        self.weights[name] = numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def add(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str] | None = None,
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        """Adds a node, and returns the name of its first output."""
        outputs = outputs or [f"{operator}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def linear(self, x: str, name: str, layer: torch.nn.Linear, factors: str = "") -> str:
        """Adds x W + b, in int8 if there is a range for it. If there are `factors`, each output is multiplied by its
        factor."""
        if self.ranges is None or name not in self.ranges:
            product = self.add("MatMul", [x, self.constant(f"{name}.weight", layer.weight.T)])
            sums = self.add("Add", [product, self.constant(f"{name}.bias", layer.bias)])
            return self.add("Mul", [sums, factors]) if factors else sums
        weight, scale = weight_integers(layer.weight.detach().float().cpu(), self.top)
        grid = input_grid(self.ranges[name])
        inputs = [self.constant(f"{name}.x_scale", grid[0]), self.constant(f"{name}.x_zero", grid[1], np.uint8)]
        quantized = self.add("QuantizeLinear", [x, *inputs])
        self.constant(f"{name}.weight", weight.T.numpy(), np.int8)
        ends = [self.constant(f"{name}.scale", scale.squeeze(1)), self.constant(f"{name}.bias", layer.bias)]
        if factors:
            # Multiplying the scales is cheaper than multiplying the outputs, because there are fewer of them.
            ends = [self.add("Mul", [end, factors]) for end in ends]
        step, zero = inputs
        operands = [quantized, f"{name}.weight", step, ends[0], zero, "", ends[1]]
        return self.add("MatMulIntegerToFloat", operands, domain=FUSED)

    def norm(self, x: str, name: str, layer: torch.nn.LayerNorm, skip: str | None = None) -> str:
        """Adds a layer norm; with `skip`, it is the norm of the sum."""
        weights = [self.constant(f"{name}.weight", layer.weight), self.constant(f"{name}.bias", layer.bias)]
        if skip is None:
            return self.add("LayerNormalization", [x, *weights], axis=-1, epsilon=layer.eps)
        return self.add("SkipLayerNormalization", [skip, x, *weights], domain=FUSED, epsilon=layer.eps)


def build(model: Model, ranges: Ranges | None = None, weight_bits: int = 8) -> onnx.ModelProto:
    """Returns the graph, in int8 if `ranges` are given."""
    graph = Graph(ranges, weight_bits)
    for name, number in (("first", [0]), ("second", [1]), ("zero", 0), ("two", [2]), ("one_row", [1, WIDTH])):
        graph.constant(name, number, np.int64)
    graph.constant("one", 1.0)
    past_tokens = graph.add("Gather", [graph.add("Shape", ["past_k0"]), "two"])
    x, value = embed(graph, model), ""
    bias, count = attention_bias(graph, past_tokens), graph.add("Cast", [past_tokens], to=TensorProto.FLOAT)
    sharpness = sharper(graph, model, count)
    # Only the head's first token and the markers of the last layer's output are used.
    looked_at = graph.add("Concat", ["first", "markers"], axis=0)
    attention = Attention(bias, sharpness, looked_at)
    for i in range(LAYERS):
        x, value = layer(graph, model, i, x, attention)
    x = graph.add("Squeeze", [x, "first"])
    marked = graph.add("Slice", [x, "second", graph.constant("last", [2**31 - 1], np.int64), "first"])
    dense = graph.add("Gelu", [graph.linear(marked, "head.dense", model.dense)], domain=FUSED)
    scores = graph.linear(graph.norm(dense, "head.norm", model.dense_norm), "head.score", model.score)
    options, many = pooled_options(graph, value), log_of_options(graph)
    for added in (similarity(graph, model, options, count), none_of_these(graph, model, options, many)):
        scores = graph.add("Add", [scores, added])
    graph.add("Squeeze", [scores, "second"], ["logits"])
    act(graph, model, x, many)
    return finished(graph)


def embed(graph: Graph, model: Model) -> str:
    """Adds the normed sum of the embeddings of word, position and type; those of words are int8 rows with a scale
    each."""
    if graph.ranges is None:
        word = graph.add("Gather", [graph.constant("word.weight", model.word.weight), "input_ids"])
    else:
        table, scale = row_integers(model.word.weight.detach().float().cpu())
        rows = graph.add("Gather", [graph.constant("word.weight", table.numpy(), np.int8), "input_ids"])
        scale_rows = graph.add("Gather", [graph.constant("word.scale", scale.squeeze(1)), "input_ids"])
        scales = graph.add("Unsqueeze", [scale_rows, "second"])
        word = graph.add("Mul", [graph.add("Cast", [rows], to=TensorProto.FLOAT), scales])
    position = graph.add("Gather", [graph.constant("position.weight", model.position.weight), "positions"])
    kind = graph.add("Gather", [graph.constant("kind.weight", model.kind.weight), "types"])
    # One node adds and norms, because a separate layer norm takes three times as long.
    return graph.norm(graph.add("Add", [position, kind]), "norm", model.norm, graph.add("Unsqueeze", [word, "first"]))


def attention_bias(graph: Graph, past_tokens: str) -> str:
    """Adds the attention bias [1, 1, tokens, past + tokens]: 0 if a token sees another, else -1e9; all tokens see the
    past."""
    key, query = graph.add("Unsqueeze", ["option_ids", "first"]), graph.add("Unsqueeze", ["option_ids", "second"])
    seen = graph.add("Or", [graph.add("Equal", [key, "zero"]), graph.add("Equal", [query, key])])
    own = graph.add("Where", [seen, graph.constant("nothing", 0.0), graph.constant("minus_much", -1e9)])
    left, right = graph.constant("pad_left", [0], np.int64), graph.constant("pad_right", [0, 0], np.int64)
    pads = graph.add("Concat", [left, past_tokens, right], axis=0)
    return graph.add("Unsqueeze", [graph.add("Pad", [own, pads]), graph.constant("axes01", [0, 1], np.int64)])


def sharper(graph: Graph, model: Model, count: str) -> list[str]:
    """Adds the factors of each layer's queries, keys and values [3 x width]: those of queries are above 1 after a long
    past."""
    ratio = graph.add("Div", [count, graph.constant("sharp_from", float(SHARP_FROM))])
    growth = graph.add("Log", [graph.add("Max", [ratio, "one"])])
    queries = torch.stack([block.sharpness for block in model.layers]).repeat_interleave(HEAD_DIM, dim=1)
    rates = graph.constant("sharpness", torch.cat([queries, torch.zeros(LAYERS, 2 * WIDTH)], dim=1).flatten())
    names = [f"sharper_{i}" for i in range(LAYERS)]
    factors = graph.add("Add", [graph.add("Mul", [rates, growth]), "one"])
    graph.add("Split", [factors], names, axis=0, num_outputs=LAYERS)
    return names


@dataclass(frozen=True)
class Attention:
    """The names that attention reads: its bias, the factors of each layer, and the tokens of the last layer's output
    that are used."""

    bias: str
    sharpness: list[str]
    looked_at: str


def layer(graph: Graph, model: Model, i: int, x: str, attention: Attention) -> tuple[str, str]:
    """Adds one transformer layer, and returns its output and its values, both [1, tokens, width]; the last layer's
    output has only the tokens that are used."""
    block, name = model.layers[i], f"layers.{i}"
    split = [f"query_{i}", f"key_{i}", f"value_{i}"]
    qkv = graph.linear(x, f"{name}.qkv", block.qkv, attention.sharpness[i])
    graph.add("Split", [qkv], split, axis=2, num_outputs=3)
    inputs = [*split, "", "", attention.bias, f"past_k{i}", f"past_v{i}"]
    outputs = [f"mixed_{i}", f"present_k{i}", f"present_v{i}"]
    mixed = graph.add("MultiHeadAttention", inputs, outputs, domain=FUSED, num_heads=HEADS)
    if i == LAYERS - 1:
        x, mixed = (graph.add("Gather", [part, attention.looked_at], axis=1) for part in (x, mixed))
    x = graph.norm(graph.linear(mixed, f"{name}.out", block.out), f"{name}.norm1", block.norm1, x)
    inner = graph.add("Gelu", [graph.linear(x, f"{name}.up", block.up)], domain=FUSED)
    return graph.norm(graph.linear(inner, f"{name}.down", block.down), f"{name}.norm2", block.norm2, x), split[2]


def pooled_options(graph: Graph, value: str) -> str:
    """Adds the mean of the last layer's values over each option [markers, width]."""
    markers = graph.add("Unsqueeze", [graph.add("Gather", ["option_ids", "markers"]), "second"])
    is_own = graph.add("Equal", [markers, graph.add("Unsqueeze", ["option_ids", "first"])])
    own = graph.add("Cast", [is_own], to=TensorProto.FLOAT)
    sums = graph.add("MatMul", [own, graph.add("Squeeze", [value, "first"])])
    return graph.add("Div", [sums, graph.add("ReduceSum", [own, "second"], keepdims=1)])


def log_of_options(graph: Graph) -> str:
    """Adds the logarithm of the number of the question's options [1], which is 0 if there is none."""
    options = graph.add("Cast", ["option_count"], to=TensorProto.FLOAT)
    return graph.add("Log", [graph.add("Max", [options, "one"])])


def similarity(graph: Graph, model: Model, options: str, count: str) -> str:
    """Adds the scaled cosine of the pooled state and each pooled option [markers, 1]; 0 if there is no state."""
    total = graph.add("Reshape", [graph.add("ReduceSum", [f"past_v{LAYERS - 1}", "two"], keepdims=0), "one_row"])
    mean_of_state = graph.add("Div", [total, graph.add("Max", [count, "one"])])
    state = graph.linear(mean_of_state, "similar.state", model.similar_state)
    option = graph.linear(options, "similar.option", model.similar_option)
    product = graph.add("ReduceSum", [graph.add("Mul", [option, state]), "second"], keepdims=1)
    lengths = graph.add("Mul", [length(graph, option), length(graph, state)])
    scale = graph.add("Mul", [graph.constant("similar.scale", model.similar_scale), graph.add("Min", [count, "one"])])
    return graph.add("Mul", [graph.add("Div", [product, lengths]), scale])


def none_of_these(graph: Graph, model: Model, options: str, many: str) -> str:
    """Adds what the logits of options that mean "none of these" have more [markers, 1], by the logarithm of the number
    of options."""
    grown = graph.add("Mul", [many, graph.constant("none.growth", model.none.growth)])
    added = graph.add("Sub", [grown, graph.constant("none.offset", model.none.offset)])
    return graph.add("Mul", [graph.add("Sigmoid", [graph.linear(options, "none", model.none)]), added])


def length(graph: Graph, x: str) -> str:
    """Adds the Euclidean length of each row, which is at least 1e-8 as in PyTorch's cosine."""
    return graph.add("Max", [graph.add("ReduceL2", [x, "second"], keepdims=1), graph.constant("tiny", 1e-8)])


def act(graph: Graph, model: Model, x: str, many: str) -> None:
    """Adds `act_logits` from the head's first token, the spread of the logits and the logarithm of the number of
    options. Two hopeless options are added, so that there are always at least two."""
    padded = graph.add("Concat", ["logits", graph.constant("hopeless", [-1e4, -1e4])], axis=0)
    graph.add("TopK", [padded, "two"], ["top", "top_index"])
    log_p = graph.add("LogSoftmax", [padded], axis=0)
    probability = graph.add("Exp", [log_p])
    entropy = graph.add("Neg", [graph.add("ReduceSum", [graph.add("Mul", [probability, log_p]), "first"], keepdims=1)])
    surest = graph.add("ReduceMax", [log_p, "first"], keepdims=1)
    lead = graph.add("Sub", [graph.add("Gather", ["top", "first"]), graph.add("Gather", ["top", "second"])])
    margin = graph.add("Min", [lead, graph.constant("wide", 20.0)])
    head = graph.add("Reshape", [graph.add("Gather", [x, "first"], axis=0), graph.constant("flat", [WIDTH], np.int64)])
    features = graph.add("Unsqueeze", [graph.add("Concat", [head, margin, surest, entropy, many], axis=0), "first"])
    graph.add("Squeeze", [graph.linear(features, "act", model.act), "first"], ["act_logits"])


def finished(graph: Graph) -> onnx.ModelProto:
    """Returns the graph with its inputs and outputs."""

    def tensor(name: str, kind: int, shape: list[str | int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [tensor(name, TensorProto.INT64, ["tokens"]) for name in ("input_ids", "positions", "types", "option_ids")]
    inputs += [tensor("markers", TensorProto.INT64, ["markers"]), tensor("option_count", TensorProto.INT64, [1])]
    outputs = [tensor("logits", TensorProto.FLOAT, ["markers"]), tensor("act_logits", TensorProto.FLOAT, [2])]
    for i in range(LAYERS):
        for kind in "kv":
            inputs.append(tensor(f"past_{kind}{i}", TensorProto.FLOAT, [1, HEADS, "past", HEAD_DIM]))
            outputs.append(tensor(f"present_{kind}{i}", TensorProto.FLOAT, [1, HEADS, "past_and_tokens", HEAD_DIM]))
    body = helper.make_graph(graph.nodes, "shared-state", inputs, outputs, list(graph.weights.values()))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(FUSED, 1)]
    return helper.make_model(body, opset_imports=opsets, producer_name="svc-training", ir_version=10)
