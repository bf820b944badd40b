"""Makes a cross-encoder in Hugging Face format from the weights of a `shared-state` folder, for the servers that read it.

    python cross_encoder.py models/svc-small target/bench/cross-encoder

It is the same encoder in fp32, with a pooler and one score for a pair of texts. The pooler and the score are random:
the model was not trained to rank, and its scores mean nothing. Their cost is real.
"""
import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

POSITIONS = 1024


class Weights:
    def __init__(self, source):
        self.source = {value.name: numpy_helper.to_array(value) for value in source.graph.initializer}
        self.tensors = {}

    def add(self, name, array):
        self.tensors[name] = np.ascontiguousarray(array, np.float32)

    def norm(self, name, source):
        self.add(f"{name}.weight", self.source[f"{source}.weight"])
        self.add(f"{name}.bias", self.source[f"{source}.bias"])

    def linear(self, names, source):
        """Adds the parts of a quantized weight [inputs, outputs], each as [outputs, inputs]."""
        weight = (self.source[f"{source}.weight"].astype(np.float32) * self.source[f"{source}.scale"]).T
        for name, part, bias in zip(names, np.split(weight, len(names)), np.split(self.source[f"{source}.bias"], len(names))):
            self.add(f"{name}.weight", part)
            self.add(f"{name}.bias", bias)

    def layer(self, index):
        own, source = f"bert.encoder.layer.{index}", f"layers.{index}"
        self.linear([f"{own}.attention.self.{part}" for part in ("query", "key", "value")], f"{source}.qkv")
        self.linear([f"{own}.attention.output.dense"], f"{source}.out")
        self.norm(f"{own}.attention.output.LayerNorm", f"{source}.norm1")
        self.linear([f"{own}.intermediate.dense"], f"{source}.up")
        self.linear([f"{own}.output.dense"], f"{source}.down")
        self.norm(f"{own}.output.LayerNorm", f"{source}.norm2")

    def embeddings(self):
        own, positions = "bert.embeddings", self.source["position.weight"]
        self.add(f"{own}.word_embeddings.weight", self.source["word.weight"] * self.source["word.scale"][:, None])
        self.add(f"{own}.position_embeddings.weight", np.tile(positions, (-(-POSITIONS // len(positions)), 1))[:POSITIONS])
        self.add(f"{own}.token_type_embeddings.weight", self.source["kind.weight"])
        self.norm(f"{own}.LayerNorm", "norm")

    def score(self, width):
        random = np.random.RandomState(5)
        for name, outputs in (("bert.pooler.dense", width), ("classifier", 1)):
            self.add(f"{name}.weight", random.standard_normal((outputs, width)) / width**0.5)
            self.add(f"{name}.bias", np.zeros(outputs))


def main():
    parser = argparse.ArgumentParser(description="Makes a cross-encoder in Hugging Face format.")
    parser.add_argument("source", type=Path, help="a shared-state folder")
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    config = json.loads((options.source / "config.json").read_text())
    weights = Weights(onnx.load(options.source / "model.onnx"))
    weights.embeddings()
    for index in range(config["layers"]):
        weights.layer(index)
    width = config["heads"] * config["head_dim"]
    weights.score(width)
    options.target.mkdir(parents=True, exist_ok=True)
    save_file(weights.tensors, options.target / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(options.source / "tokenizer.json", options.target)
    settings = {
        "config.json": {
            "architectures": ["BertForSequenceClassification"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": width,
            "intermediate_size": len(weights.tensors["bert.encoder.layer.0.intermediate.dense.bias"]),
            "num_attention_heads": config["heads"], "num_hidden_layers": config["layers"], "max_position_embeddings": POSITIONS,
            "type_vocab_size": 2, "vocab_size": len(weights.source["word.weight"]), "pad_token_id": config["special_ids"]["pad"],
            "layer_norm_eps": 1e-12, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, "torch_dtype": "float32",
        },
        "tokenizer_config.json": {
            "tokenizer_class": "BertTokenizerFast", "do_lower_case": True, "model_max_length": POSITIONS,
            "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]", "unk_token": "[UNK]",
        },
    }
    for name, content in settings.items():
        (options.target / name).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
