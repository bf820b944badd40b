"""jevhome E, whose makers publish no package: the answers come from this file, written from what its makers say of the folder.

    state   encoder.onnx(ids, att) -> vec of the text, by the tokenizer's own template, at most 512 tokens
    option  the same of the pair ("<type> question: <instructions>", "<id>: <description>"), at most 160, the longer text cut first
    logit   scorer.onnx(s, q); probabilities are the softmax of logits / T, T by type and number of options
"""
import json
import sys

import networks
import oracle
import tiny

CALIBRATION = {"_note": "fitted", "choice:2": {"T": 1.3}, "choice:3-5": 0.8, "choice:11+": {"T": 2.5}, "score:3-5": 1.7, "noul:2": {"T": 0.6}}
STATE_MAX, QUERY_MAX = 512, 160


def make(folder, variant=""):
    tokenizer = tiny.bert_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tiny.write_json(folder / "tokenizer_config.json", {"mask_token": "[MASK]", "model_max_length": 8192})
    tiny.write_json(folder / "config.json", {"architectures": ["ModernBertModel"], "model_type": "modernbert", "hidden_size": networks.HIDDEN})
    tiny.write_json(folder / "decision_config.json",
                    {"head": "emb", "variant": "bi", "cross_layers": 2, "evidence": False, "pooling": "cls"})
    tiny.write_json(folder / "calibration_u.json", CALIBRATION)
    graph = tiny.graph()
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), STATE_MAX, names=("ids", "att"))
    graph.op("Gather", x, graph.constant(0, "int64"), axis=1, name="vec")
    tokens = [tiny.ints("ids", "n", "len"), tiny.ints("att", "n", "len")]
    tiny.save(graph, folder / "encoder.onnx", tokens, [tiny.floats("vec", "n", networks.HIDDEN)])
    graph = tiny.graph(seed=28)
    parts = ["s", "q", graph.op("Mul", "s", "q"), graph.op("Abs", graph.op("Sub", "s", "q"))]
    x = graph.gelu(graph.linear(graph.op("Concat", *parts, axis=1), 4 * networks.HIDDEN, networks.HIDDEN, gain=2))
    graph.op("Squeeze", graph.linear(x, networks.HIDDEN, 1, gain=2), graph.ints(1), name="logits")
    vectors = [tiny.floats(name, "n", networks.HIDDEN) for name in "sq"]
    tiny.save(graph, folder / "scorer.onnx", vectors, [tiny.floats("logits", "n")])


def options(question):
    """The outcome of each option, in our order, and the text that the model reads."""
    criteria = question.get("criteria")
    if question["type"] == "noul":
        texts = [(criteria or {}).get(side) or f"The proposition is {side}." for side in ("true", "false")]
        return [(1, f"true: {texts[0]}"), (0, f"false: {texts[1]}")]
    if question["type"] == "score":
        return [(i, f"{i}: {level}") for i, level in enumerate(criteria)]
    described = dict.fromkeys(criteria) if isinstance(criteria, list) else criteria
    return [(i, f"{name}: {text or name}") for i, (name, text) in enumerate(described.items())]


def temperature(kind, count):
    size = "2" if count <= 2 else "3-5" if count <= 5 else "6-10" if count <= 10 else "11+"
    value = CALIBRATION.get(f"{kind}:{size}", 1.0)
    return value["T"] if isinstance(value, dict) else value


def answerer(folder, variant=""):
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    encoder, scorer = (onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
                       for name in ("encoder", "scorer"))

    def tokenizer(longest):
        found = Tokenizer.from_file(str(folder / "tokenizer.json"))
        found.encode_special_tokens = True  # special tokens in a text are text
        found.enable_truncation(longest, strategy="longest_first")
        return found

    of_states, of_queries = tokenizer(STATE_MAX), tokenizer(QUERY_MAX)
    of_queries.enable_padding()

    def vectors(encoded):
        ids, att = ([getattr(each, part) for each in encoded] for part in ("ids", "attention_mask"))
        return encoder.run(["vec"], {"ids": np.array(ids, np.int64), "att": np.array(att, np.int64)})[0]

    def answer(request):
        state = request["state"] if isinstance(request["state"], str) else json.dumps(request["state"], ensure_ascii=False)
        state, answers = vectors([of_states.encode(state)]), {}
        for name, question in request["questions"].items():
            outcomes, texts = zip(*options(question), strict=True)
            head = f"{question['type']} question: {question.get('instructions') or ''}"
            queries = vectors(of_queries.encode_batch([(head, text) for text in texts]))
            logits = scorer.run(["logits"], {"s": state.repeat(len(texts), 0), "q": queries})[0] / temperature(question["type"], len(texts))
            shares = np.exp(logits - logits.max())
            p = np.zeros(len(texts))
            p[list(outcomes)] = shares / shares.sum()
            answers[name] = oracle.by_label(question, p)
        return answers

    return answer


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, ()))
