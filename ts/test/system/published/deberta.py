"""Tiny models on DeBERTa-v3's vocabulary, whose logits hold a checksum of all tokens in whole numbers.

The checksum shows every token and its place in rows of any length; attention over a thousand tokens would hide them.
"""
import json
import string

import networks
import tiny
import vocabularies
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
LETTERS = string.digits + string.punctuation + vocabularies.OTHER_LETTERS + "é한국😀👩🇩\u0000"  # so that few characters are unknown
MODULUS = 997  # a prime


def tokenizer(added, normalizer):
    """A Unigram tokenizer: the mask and a maker's own tokens stand behind the pieces of the vocabulary."""
    vocabulary = vocabularies.pieces(SPECIAL)
    known = {piece for piece, _ in vocabulary}
    vocabulary += [(letter, -9.0) for letter in dict.fromkeys(LETTERS) if letter not in known]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=SPECIAL.index("[UNK]")))
    made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    made.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in [*SPECIAL, "[MASK]", *added]])
    return vocabularies.with_template(made)


def without_specials(file):
    """A tokenizer for which special tokens in a text are text: its vocabulary cannot spell them either."""
    made = Tokenizer.from_file(str(file))
    content = json.loads(made.to_str())
    specials = {token["content"] for token in content["added_tokens"]}
    pieces = [(f"\U0010ffff{i}" if piece in specials else piece, score) for i, (piece, score) in enumerate(content["model"]["vocab"])]
    made.model = models.Unigram(pieces, unk_id=content["model"]["unk_id"])
    made.encode_special_tokens = True
    return made


def encoder(graph, vocabulary):
    """[1, length, width], the hidden states, and [length], the places from 1 on, of which there may be any number."""
    one, length = graph.constant(1, "int64"), graph.op("Squeeze", graph.op("Shape", "input_ids", start=1, end=2), graph.ints(0))
    places = graph.op("Range", one, graph.op("Add", length, one), one)
    angles = graph.op("Mul", graph.op("Unsqueeze", graph.op("Cast", places, to=tiny.TensorProto.FLOAT), graph.ints(1)),
                      graph.constant(graph.draw(1, networks.HIDDEN, gain=0.3), "float32"))
    x = graph.norm(graph.add(graph.table(vocabulary, "input_ids"), graph.op("Sin", angles)))
    return graph.layer(x, networks.padding_bias(graph)), places


def products(graph, places):
    """[1, length]: each token's part of the checksum."""
    token = graph.op("Add", graph.op("Mul", "input_ids", graph.ints(31)), graph.ints(5))
    return graph.op("Mul", graph.op("Mul", token, "attention_mask"), places)


def rest(graph, number):
    return graph.op("Mod", number, graph.constant(MODULUS, "int64"))


def logits(graph, scores, checksums):
    """The sum of the scores and a number from -2 to 2 that the checksums decide."""
    part = graph.op("Cast", rest(graph, checksums), to=tiny.TensorProto.FLOAT)
    shift = graph.op("Sub", graph.op("Mul", part, graph.constant(4 / MODULUS, "float32")), graph.constant(2, "float32"))
    return graph.op("Add", scores, shift, name="logits")


def engine(folder, tokenizer=None, **files):
    """decision-toolkit's engine on a folder, for which special tokens in a text are text."""
    from decision_toolkit.engine import OnnxEngine

    made = OnnxEngine(folder, {"model": "onnx/model.onnx", **files}, threads=1)
    made._tokenizer = tokenizer or without_specials(folder / "tokenizer.json")
    return made


def state(value):
    """A state as an adapter takes it: a state that is `true`, `false` or `null` has no text of its own there."""
    return {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else value


def question(given):
    """A question as an adapter takes it: a choice without descriptions is a list of names only in our API."""
    criteria = given.get("criteria")
    is_list = given["type"] == "choice" and isinstance(criteria, list)
    return {**given, "criteria": dict.fromkeys(criteria) if is_list else criteria}


def probabilities(answer):
    """The probabilities of an answer in the caller's order, a noul's false first."""
    values = answer["probabilities"]
    return [values["false"], values["true"]] if answer["type"] == "noul" else list(values.values())
