"""Makes the `marker` folders that the peers serve, from the weights of a `shared-state` folder.

    python graphs.py models/svc-small target/bench

writes `marker-int8` and `marker-fp32` there. They are the same encoder and head, layer by layer, with the tensors of
the published decision encoders: each row is one question with the state in it, and rows are padded to a batch. In int8
the weights and the ranges are the model's own; in fp32 the weights are multiplied out, and nothing is quantized. The
encoder was not trained on such rows: their cost is real, their answers are not.
"""
import argparse
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The model knows 512 positions; the further positions repeat them, so that a row can hold the longest state.
POSITIONS = 8192
MICROSOFT = "com.microsoft"


class Marker:
    """The nodes and weights of a `marker` graph, which are added in order."""

    def __init__(self, source, heads, int8):
        self.source = {value.name: numpy_helper.to_array(value) for value in source.graph.initializer}
        self.heads, self.int8 = heads, int8
        self.nodes, self.weights = [], {}

    def op(self, kind, *inputs, domain="", outputs=1, **attributes):
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, name, value):
        self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def ints(self, *values):
        return self.constant(f"ints_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def copy(self, name):
        return self.constant(name, self.source[name])

    def linear(self, x, name):
        """Returns `x` [tokens, inputs] times a quantized weight, computed in the model's way or in fp32."""
        weight, scale, bias = (self.source[f"{name}.{part}"] for part in ("weight", "scale", "bias"))
        if not self.int8:
            full = self.constant(f"{name}.weight", weight.astype(np.float32) * scale)
            return self.op("Gemm", x, full, self.copy(f"{name}.bias"))
        parts = {part: self.copy(f"{name}.{part}") for part in ("x_scale", "x_zero", "weight", "scale", "bias")}
        levels = self.op("QuantizeLinear", x, parts["x_scale"], parts["x_zero"])
        return self.op("MatMulIntegerToFloat", levels, parts["weight"], parts["x_scale"], parts["scale"],
                       parts["x_zero"], "", parts["bias"], domain=MICROSOFT)

    def words(self):
        """Returns the embeddings of `input_ids`, [rows, length, width]."""
        weight, scale = self.source["word.weight"], self.source["word.scale"]
        if not self.int8:
            return self.op("Gather", self.constant("word.weight", weight.astype(np.float32) * scale[:, None]), "input_ids")
        levels = self.op("Cast", self.op("Gather", self.copy("word.weight"), "input_ids"), to=TensorProto.FLOAT)
        return self.op("Mul", levels, self.op("Unsqueeze", self.op("Gather", self.copy("word.scale"), "input_ids"), self.ints(2)))

    def embed(self):
        """Returns the first layer's input, [rows * length, width]; every token has the first type."""
        table = self.source["position.weight"] + self.source["kind.weight"][0]
        table = np.tile(table, (-(-POSITIONS // len(table)), 1))[:POSITIONS]
        length = self.op("Shape", "input_ids", start=1, end=2)
        positions = self.op("Slice", self.constant("position.weight", table), self.ints(0), length, self.ints(0))
        x = self.op("Add", self.words(), positions)
        flat = self.op("Reshape", x, self.ints(-1, table.shape[1]))
        return self.op("LayerNormalization", flat, self.copy("norm.weight"), self.copy("norm.bias"), axis=-1, epsilon=1e-12)

    def layer(self, x, name, shape, mask):
        query, key, value = (self.op("Reshape", part, shape) for part in
                             self.op("Split", self.linear(x, f"{name}.qkv"), outputs=3, axis=1, num_outputs=3))
        seen = self.op("MultiHeadAttention", query, key, value, "", mask, domain=MICROSOFT, num_heads=self.heads)
        seen = self.op("Reshape", seen, self.ints(-1, self.width))
        x = self.add_and_norm(x, self.linear(seen, f"{name}.out"), f"{name}.norm1")
        inner = self.op("Gelu", self.linear(x, f"{name}.up"), domain=MICROSOFT)
        return self.add_and_norm(x, self.linear(inner, f"{name}.down"), f"{name}.norm2")

    def add_and_norm(self, x, added, name):
        return self.op("SkipLayerNormalization", x, added, self.copy(f"{name}.weight"), self.copy(f"{name}.bias"),
                       domain=MICROSOFT, epsilon=1e-12)

    @property
    def width(self):
        return self.source["position.weight"].shape[1]

    def head(self, x, shape):
        """Adds one score per marker: `logits` [rows, markers]."""
        rows = self.op("Reshape", x, shape)
        marked = self.op("GatherND", rows, self.op("Unsqueeze", "marker_pos", self.ints(2)), batch_dims=1)
        dense = self.op("Add", self.op("MatMul", marked, self.copy("head.dense.weight")), self.copy("head.dense.bias"))
        norm = self.op("LayerNormalization", self.op("Gelu", dense, domain=MICROSOFT),
                       self.copy("head.norm.weight"), self.copy("head.norm.bias"), axis=-1, epsilon=1e-5)
        score = self.op("Add", self.op("MatMul", norm, self.copy("head.score.weight")), self.copy("head.score.bias"))
        absent = self.constant("absent", np.array(-1e9, np.float32))
        self.nodes.append(helper.make_node("Where", ["marker_mask", self.op("Squeeze", score, self.ints(2)), absent], ["logits"]))
        # The action head is left out, which NaN in its place says.
        two = self.op("Concat", self.op("Shape", "input_ids", start=0, end=1), self.ints(2), axis=0)
        nothing = self.constant("nothing", np.array(np.nan, np.float32))
        self.nodes.append(helper.make_node("Expand", [nothing, two], ["act_logits"]))

    def model(self, layers):
        x = self.embed()
        shape = self.op("Concat", self.op("Shape", "input_ids"), self.ints(self.width), axis=0)
        mask = self.op("Cast", "attention_mask", to=TensorProto.INT32)
        for index in range(layers):
            x = self.layer(x, f"layers.{index}", shape, mask)
        self.head(x, shape)
        tensor = helper.make_tensor_value_info
        inputs = [tensor(name, TensorProto.INT64, ["rows", "length"]) for name in ("input_ids", "attention_mask")]
        inputs += [tensor("marker_pos", TensorProto.INT64, ["rows", "markers"]),
                   tensor("marker_mask", TensorProto.BOOL, ["rows", "markers"]), tensor("qtype", TensorProto.INT64, ["rows"])]
        outputs = [tensor("logits", TensorProto.FLOAT, ["rows", "markers"]), tensor("act_logits", TensorProto.FLOAT, ["rows", 2])]
        graph = helper.make_graph(self.nodes, "marker", inputs, outputs, list(self.weights.values()))
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="svc-bench")
        model.ir_version = 10
        return model.SerializeToString(deterministic=True)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_folder(source, folder, int8):
    """Writes a `marker` folder of the same weights, tokenizer and temperatures as `source`."""
    config = json.loads((source / "config.json").read_text())
    graph = Marker(onnx.load(source / "model.onnx"), config["heads"], int8).model(config["layers"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(graph)
    shutil.copy(source / "tokenizer.json", folder)
    kept = {key: config[key] for key in ("version", "temperature", "special_ids", "files")}
    config = {"name": f"{config['name']}-{folder.name}", "layout": "marker", "max_len": POSITIONS, "head_max": 256,
              "sha256": digest(folder / "model.onnx"), **kept}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Makes the marker folders that the peers serve.")
    parser.add_argument("source", type=Path, help="a shared-state folder")
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    for int8 in (True, False):
        make_folder(options.source, options.target / ("marker-int8" if int8 else "marker-fp32"), int8)


if __name__ == "__main__":
    main()
