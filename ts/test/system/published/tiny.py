"""Tiny graphs and tokenizers for model folders in their makers' forms: one layer of width 32 with random weights.

The scorer's gain is high, and each token's place has a vector of its own, so the text and the order of all tokens show in
every logit.
"""
import json
import os

import networks
import vocabularies
from onnx import TensorProto
from tokenizers import AddedToken

WIDTH = int(os.environ.get("TINY_WIDTH", "32"))
networks.HEADS, networks.HEAD_DIM, networks.HIDDEN = 4, WIDTH // 4, WIDTH
LAYERS, GAIN = 1, 6


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def bert_tokenizer():
    """A byte-level tokenizer with the special tokens of ModernBERT."""
    return vocabularies.byte_level()


def gemma_tokenizer():
    """The same with the special tokens of mmBERT."""
    tokenizer = vocabularies.byte_level()
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return tokenizer


def encoder(graph, vocabulary, positions, kind=None, names=("input_ids", "attention_mask")):
    """[1, length, width]: the hidden states of the tokens, with the vector of a question's type where there is one."""
    ids, mask = names
    length = graph.op("Squeeze", graph.op("Shape", ids, start=1, end=2), graph.ints(0))
    places = graph.op("Range", graph.constant(0, "int64"), length, graph.constant(1, "int64"))
    parts = [graph.table(vocabulary, ids), graph.table(positions, places)]
    if kind:
        parts.append(graph.op("Unsqueeze", graph.table(3, kind), graph.ints(1)))
    x, bias = graph.norm(graph.add(*parts)), networks.padding_bias(graph, mask)
    for _ in range(LAYERS):
        x = graph.layer(x, bias)
    return x


def score(graph, x, markers=None, mask=None, name="logits"):
    """The logits of the tokens at `markers`, or of all tokens; those that `mask` leaves out are very low."""
    if markers:
        x = graph.op("GatherND", x, graph.op("Unsqueeze", markers, graph.ints(2)), batch_dims=1)
    scores = graph.linear(x, networks.HIDDEN, 1, gain=GAIN)
    if not mask:
        return graph.op("Squeeze", scores, graph.ints(2), name=name)
    scores = graph.op("Squeeze", scores, graph.ints(2))
    return graph.op("Where", mask, scores, graph.constant(networks.MASKED, "float32"), name=name)


def act(graph, x, name="act_logits"):
    first = graph.op("Gather", x, graph.constant(0, "int64"), axis=1)
    return graph.op("Identity", graph.linear(first, networks.HIDDEN, 2), name=name)


def ints(name, *shape):
    return (name, TensorProto.INT64, list(shape))


def flags(name, *shape):
    return (name, TensorProto.BOOL, list(shape))


def floats(name, *shape):
    return (name, TensorProto.FLOAT, list(shape))


TOKENS = [ints("input_ids", "rows", "length"), ints("attention_mask", "rows", "length")]
MARKERS = ints("marker_pos", "rows", "markers")
MARKER_MASK = flags("marker_mask", "rows", "markers")
KIND = ints("qtype", "rows")
LOGITS = floats("logits", "rows", "markers")
ACT = floats("act_logits", "rows", 2)


def graph(seed=27):
    return networks.Graph(seed=seed)


def save(graph, path, inputs, outputs):
    """Writes a graph in the opset of the published ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph.model(path.stem, inputs, outputs))
