"""Makes a decision encoder of the size of Laya, with random int8 weights, in the folder form of its maker.

    python laya.py FOLDER TOKENIZER [tiny]

The encoder has the shape of ModernBERT-large: 28 layers of width 1024 with 16 heads and 2,624 gated units, rotary
positions, attention over the whole row in each third layer and over the 64 tokens on both sides in the others. The head
has two transformer layers, a score for each marker and an action. That makes 421 million weights with `tiny` left out.

Products are quantized as ONNX Runtime's `quantize_dynamic` does with `reduce_range`: ranges of inputs are found in each
run, weights have 7 bits, so no sum of two products saturates in 16 bits, and all processors compute the same. The answers
mean nothing, but they depend on the text: a program that builds other rows gives other ones.
"""
import argparse
import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

MAX_LEN, HEAD_MAX_LEN = 1024, 256
WINDOW = 64  # on both sides: ModernBERT's local attention of 128
THETA = {"global": 160_000.0, "local": 10_000.0}
LEVELS = 63  # of 7 bits
SPREAD = 20  # levels of a standard deviation
MASKED = np.float32(-1e9)
KINDS = 3
# Small enough that a rounding step of the first layer is still small in the last one.
RESIDUAL_GAIN, ATTENTION_GAIN = 0.3, 1.5


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    gated: int
    inner: int
    vocabulary: int

    @property
    def head_width(self):
        return self.width // self.heads


LARGE = Shape(layers=28, width=1024, heads=16, gated=2624, inner=4096, vocabulary=50_368)
TINY = Shape(layers=28, width=128, heads=4, gated=320, inner=512, vocabulary=50_368)


class Laya:
    """The nodes and weights of the graph, which are added in order."""

    def __init__(self, shape, seed=421):
        self.shape, self.random = shape, np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], {}, 0

    def op(self, kind, *inputs, name=None, outputs=1, **attributes):
        names = [name or f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype=np.float32, name=None):
        name = name or f"weight_{len(self.weights)}"
        self.weights[name] = numpy_helper.from_array(np.asarray(value, dtype, order="C"), name)
        return name

    def ints(self, *values):
        name = f"ints_{'_'.join(map(str, values))}"
        return name if name in self.weights else self.constant(values, np.int64, name)

    def number(self, value):
        return self.constant(np.float32(value))

    def levels(self, *shape):
        """Random weights of 7 bits: a normal distribution, cut at its ends."""
        self.count += math.prod(shape)
        drawn = self.random.standard_normal(shape, np.float32)
        drawn *= SPREAD
        return np.clip(np.rint(drawn, out=drawn), -LEVELS, LEVELS, out=drawn).astype(np.int8)

    def linear(self, x, inputs, outputs, gain=1.0, bias=False):
        """`x` times a weight: both in 8 bits, the range of `x` found in the run."""
        weight = self.constant(self.levels(inputs, outputs), np.int8)
        quantized, scale, zero = self.op("DynamicQuantizeLinear", x, outputs=3)
        sums = self.op("MatMulInteger", quantized, weight, zero, self.constant(0, np.int8))
        scales = self.op("Mul", scale, self.number(gain / (SPREAD * math.sqrt(inputs))))
        product = self.op("Mul", self.op("Cast", sums, to=TensorProto.FLOAT), scales)
        return self.op("Add", product, self.floats(outputs)) if bias else product

    def floats(self, *shape):
        self.count += math.prod(shape)
        return self.constant(0.1 * self.random.standard_normal(shape, np.float32))

    def table(self, rows, ids):
        """Rows of an int8 table."""
        levels = self.op("Gather", self.constant(self.levels(rows, self.shape.width), np.int8), ids)
        return self.op("DequantizeLinear", levels, self.number(1 / SPREAD), self.constant(0, np.int8))

    def norm(self, x):
        weight = self.constant(1 + 0.1 * self.random.standard_normal(self.shape.width, np.float32))
        self.count += self.shape.width
        return self.op("LayerNormalization", x, weight, axis=-1, epsilon=1e-5)

    def rotary(self, theta):
        """The cosines and sines of the row's positions, [length, head width]."""
        width = self.shape.head_width
        rates = theta ** (-np.arange(0, width, 2) / width)
        angles = np.tile(np.outer(np.arange(MAX_LEN), rates), 2)
        length = self.op("Shape", "input_ids", start=1, end=2)
        tables = (self.constant(function(angles)) for function in (np.cos, np.sin))
        return [self.op("Slice", table, self.ints(0), length, self.ints(0)) for table in tables]

    def masks(self):
        """The bias of attention over the whole row, and of attention over the neighbours."""
        real = self.op("Unsqueeze", self.op("Cast", "attention_mask", to=TensorProto.BOOL), self.ints(1, 2))
        length = self.op("Squeeze", self.op("Shape", "input_ids", start=1, end=2), self.ints(0))
        places = self.op("Range", self.constant(0, np.int64), length, self.constant(1, np.int64))
        apart = self.op("Abs", self.op("Sub", self.op("Unsqueeze", places, self.ints(0)), self.op("Unsqueeze", places, self.ints(1))))
        near = self.op("LessOrEqual", apart, self.constant(WINDOW, np.int64))
        zero, masked = self.number(0), self.number(MASKED)
        seen = {"global": real, "local": self.op("And", real, near)}
        return {name: self.op("Where", one, zero, masked) for name, one in seen.items()}

    def turned(self, x, cosines, sines):
        half = self.shape.head_width // 2
        first, second = self.op("Split", x, self.ints(half, half), axis=-1, outputs=2)
        swapped = self.op("Concat", self.op("Neg", second), first, axis=-1)
        return self.op("Add", self.op("Mul", x, cosines), self.op("Mul", swapped, sines))

    def attention(self, x, mask, rotary=None, bias=False):
        width, heads, head_width = self.shape.width, self.shape.heads, self.shape.head_width
        joint = self.linear(x, width, 3 * width, gain=ATTENTION_GAIN, bias=bias)
        parts = self.op("Split", joint, self.ints(width, width, width), axis=-1, outputs=3)
        query, key, value = (self.op("Transpose", self.op("Reshape", part, self.ints(0, 0, heads, head_width)), perm=[0, 2, 1, 3]) for part in parts)
        if rotary:
            query, key = self.turned(query, *rotary), self.turned(key, *rotary)
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = self.op("Mul", scores, self.number(1 / math.sqrt(head_width)))
        seen = self.op("MatMul", self.op("Softmax", self.op("Add", scaled, mask), axis=-1), value)
        joined = self.op("Reshape", self.op("Transpose", seen, perm=[0, 2, 1, 3]), self.ints(0, 0, width))
        return self.linear(joined, width, width, gain=RESIDUAL_GAIN, bias=bias)

    def encoder(self):
        width, gated = self.shape.width, self.shape.gated
        masks, rotary = self.masks(), {name: self.rotary(theta) for name, theta in THETA.items()}
        x = self.norm(self.table(self.shape.vocabulary, "input_ids"))
        for index in range(self.shape.layers):
            reach = "local" if index % 3 else "global"
            x = self.op("Add", x, self.attention(self.norm(x) if index else x, masks[reach], rotary[reach]))
            both = self.linear(self.norm(x), width, 2 * gated)
            inner, gate = self.op("Split", both, self.ints(gated, gated), axis=-1, outputs=2)
            product = self.op("Mul", self.op("Gelu", inner), gate)
            x = self.op("Add", x, self.linear(product, gated, width, gain=RESIDUAL_GAIN))
        return self.norm(x), masks["global"]

    def head(self, x, mask):
        width, inner = self.shape.width, self.shape.inner
        x = self.op("Add", x, self.op("Unsqueeze", self.table(KINDS, "qtype"), self.ints(1)))
        for _ in range(2):
            x = self.norm(self.op("Add", x, self.attention(x, mask, bias=True)))
            units = self.op("Gelu", self.linear(x, width, inner, bias=True))
            x = self.norm(self.op("Add", x, self.linear(units, inner, width, gain=RESIDUAL_GAIN, bias=True)))
        marked = self.op("GatherND", x, self.op("Unsqueeze", "marker_pos", self.ints(2)), batch_dims=1)
        scores = self.op("Squeeze", self.score(self.op("Gelu", self.linear(marked, width, width, bias=True)), 1), self.ints(2))
        self.op("Where", "marker_mask", scores, self.number(MASKED), name="logits")
        self.op("Identity", self.score(self.op("Gather", x, self.constant(0, np.int64), axis=1), 2), name="act_logits")

    def score(self, x, outputs):
        width = self.shape.width
        self.count += width * outputs
        weight = 1 / math.sqrt(width) * self.random.standard_normal((width, outputs), np.float32)
        return self.op("MatMul", x, self.constant(weight))

    def model(self):
        self.head(*self.encoder())
        tensor = helper.make_tensor_value_info
        inputs = [tensor(name, TensorProto.INT64, ["rows", "length"]) for name in ("input_ids", "attention_mask")]
        inputs += [tensor("marker_pos", TensorProto.INT64, ["rows", "markers"]),
                   tensor("marker_mask", TensorProto.BOOL, ["rows", "markers"]), tensor("qtype", TensorProto.INT64, ["rows"])]
        outputs = [tensor("logits", TensorProto.FLOAT, ["rows", "markers"]), tensor("act_logits", TensorProto.FLOAT, ["rows", 2])]
        graph = helper.make_graph(self.nodes, "laya", inputs, outputs, list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], producer_name="svc-bench")
        model.ir_version = 10
        return model.SerializeToString(deterministic=True)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Makes a folder of the form and size of Laya with random weights.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("tokenizer", type=Path, help="a tokenizer.json with [CLS], [SEP], [MASK] and [PAD]")
    parser.add_argument("shape", nargs="?", choices=["large", "tiny"], default="large")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    shutil.copy(options.tokenizer, options.folder / "tokenizer.json")
    laya = Laya(TINY if options.shape == "tiny" else LARGE)
    (options.folder / "model.onnx").write_bytes(laya.model())
    common = {"max_len": MAX_LEN, "head_max_len": HEAD_MAX_LEN, "temperature": [1.1, 1.2, 0.9], "temperature_by_options": {"choice:3-5": 1.4}}
    write_json(options.folder / "rl_agent_config.json", common)
    # edgejev reads a file of its own, which it makes of the maker's when it converts a model.
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    special = {f"{name}_id": tokenizer.token_to_id(f"[{name.upper()}]") for name in ("cls", "sep", "mask", "pad")}
    write_json(options.folder / "edgejev.json", {
        "backend": "laya", "runtime": "onnx", "precision": "int8", "onnx_file": "model.onnx", "mask_token": "[MASK]", **special, **common})
    write_json(options.folder / "size.json", {"weights": laya.count})


if __name__ == "__main__":
    main()
