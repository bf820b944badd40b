"""Decima, as its makers' package runs it: an encoder, a scorer, and the ordinal head of `decima.json`.

The variant "read-once" reads the state once for all questions, "with-question" behind each question.
"""
import json
import os
import sys
import warnings

import networks
import oracle
import tiny
from tokenizers import AddedToken, processors

PREFIX = "onnx/fp32"
CONFIG = {
    "read-once": {"max_state_tokens": 64, "max_choice_tokens": 24, "temperature": 1.3, "question_in_state": False},
    "with-question": {"max_state_tokens": 96, "max_choice_tokens": 20, "temperature": 0.7, "question_in_state": True,
                      "question_in_choices": True, "choice_fit": True, "state_prefix": "", "choice_prefix": ""},
    "bare": {"max_state_tokens": 64, "max_choice_tokens": 16, "temperature": 1.0, "question_in_state": True, "question_in_choices": False,
             "state_prefix": "query: ", "choice_prefix": "passage: "},
}


def e5_tokenizer():
    """A byte-level tokenizer with the special tokens and the template of XLM-RoBERTa, and no normalizer."""
    tokenizer = tiny.bert_tokenizer()
    tokenizer.normalizer = None
    names = ["<s>", "</s>", "<pad>", "<mask>"]
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    ends = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", ends)
    return tokenizer


def make(folder, variant="read-once"):
    folder = folder / PREFIX
    (folder / "tokenizer").mkdir(parents=True)
    tokenizer = e5_tokenizer()
    (folder / "tokenizer" / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tiny.write_json(folder / "tokenizer" / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>",
        "model_max_length": 512, "clean_up_tokenization_spaces": False})
    graph, config = tiny.graph(), CONFIG[variant]
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), config["max_state_tokens"])
    graph.op("Identity", x, name="token_states")
    states = [tiny.floats("token_states", "batch", "seq", networks.HIDDEN)]
    tiny.save(graph, folder / "encoder.onnx", tiny.TOKENS, states)
    scorer(folder / "scorer.onnx")
    weights = tiny.graph(seed=29)
    ordinal = {"ord_g_w": weights.draw(networks.HIDDEN, gain=0.5).tolist(), "ord_g_b": 0.25,
               "ord_gap_w": weights.draw(networks.HIDDEN, gain=0.5).tolist(), "ord_gap_b": -0.5}
    tiny.write_json(folder / "decima.json", {"backbone": "tiny", "scorer_layers": 1, **config, "ordinal": ordinal})


def scorer(path):
    """The tokens of each option attend among themselves and to the state; the score and `z` come from their mean."""
    graph = tiny.graph(seed=28)
    count = graph.op("Shape", "choice_h", start=0, end=1)
    repeats = graph.op("Concat", count, graph.ints(1), graph.ints(1), axis=0)
    state = graph.op("Tile", "state_h", repeats)
    x = graph.norm(graph.op("Add", "choice_h", attention(graph, "choice_h", "choice_h", "choice_mask")))
    x = graph.norm(graph.op("Add", x, attention(graph, x, state, "state_mask")))
    z = masked_mean(graph, x, "choice_mask")
    graph.op("Identity", z, name="z")
    likeness = graph.op("Mul", masked_mean(graph, "choice_h", "choice_mask"), masked_mean(graph, "state_h", "state_mask"))
    scores = graph.linear(graph.op("Concat", z, likeness, axis=1), 2 * networks.HIDDEN, 1, gain=4)
    graph.op("Squeeze", scores, graph.ints(1), name="scores")
    inputs = [tiny.floats("state_h", 1, "state_seq", networks.HIDDEN), tiny.ints("state_mask", 1, "state_seq"),
              tiny.floats("choice_h", "n", "choice_seq", networks.HIDDEN), tiny.ints("choice_mask", "n", "choice_seq")]
    tiny.save(graph, path, inputs, [tiny.floats("scores", "n"), tiny.floats("z", "n", networks.HIDDEN)])


def attention(graph, x, memory, mask):
    query, key, value = (graph.heads(graph.linear(side, networks.HIDDEN, networks.HIDDEN, gain=2)) for side in (x, memory, memory))
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.op("Add", graph.op("Mul", scores, graph.constant(networks.HEAD_DIM**-0.5, "float32")), networks.padding_bias(graph, mask))
    seen = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
    joined = graph.op("Reshape", graph.op("Transpose", seen, perm=[0, 2, 1, 3]), graph.ints(0, 0, networks.HIDDEN))
    return graph.linear(joined, networks.HIDDEN, networks.HIDDEN, gain=2)


def masked_mean(graph, x, mask):
    real = graph.op("Unsqueeze", graph.op("Cast", mask, to=1), graph.ints(2))
    return graph.op("Div", graph.op("ReduceSum", graph.op("Mul", x, real), graph.ints(1), keepdims=0),
                    graph.op("ReduceSum", real, graph.ints(1), keepdims=0))


def answerer(folder, variant="read-once"):
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"  # read when transformers is imported
    from decima import systemone
    from decima.runtime import DecimaOnnx

    warnings.filterwarnings("ignore", message="a state of .* was cut")  # the engine counts what is cut
    runtime = DecimaOnnx(folder / PREFIX, threads=1)
    runtime.tok.split_special_tokens = True  # special tokens in a text are text
    systemone.MAX_LEVELS = systemone.MAX_CHOICES  # the package refuses scores of more than ten levels

    def answer(request):
        state = request["state"] if isinstance(request["state"], str) else json.dumps(request["state"], ensure_ascii=False)
        answers = {}
        for name, question in request["questions"].items():
            # The package reads the name of a question without instructions; here a name never reaches the model.
            kind, asked, _ = systemone.to_question(name, {"instructions": "", **question})
            p = runtime.decide(state, asked).probs
            answers[name] = oracle.by_label(question, reversed(p) if kind == "noul" else p)
        return answers

    return answer


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, (), transformers=True))
