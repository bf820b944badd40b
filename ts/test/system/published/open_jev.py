"""open-jev, as decision-toolkit runs it: a row for each question, or in the variant "packed" one for all of them."""
import sys

import deberta
import networks
import oracle
import tiny
import toolkit
from tokenizers import Regex, normalizers

REFUSALS = toolkit.REFUSALS
ADDED = ["[STATE]", "[Q]", "[OPT]"]


def make(folder, variant="apart"):
    # As version 5 of transformers makes DeBERTa-v3's.
    spaces = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
    cleaned = normalizers.Sequence([spaces, normalizers.NFC(), normalizers.Strip(left=False, right=True)])
    tokenizer = deberta.tokenizer(ADDED, cleaned)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    graph = tiny.graph()
    x, places = deberta.encoder(graph, tokenizer.get_vocab_size())
    products = deberta.products(graph, places)
    row = deberta.rest(graph, graph.op("ReduceSum", products, graph.ints(1), keepdims=1))
    (heads, of_heads), (options, of_options) = (span(graph, x, products, pair) for pair in ("pair_q", "pair_opt"))
    both = graph.linear(graph.op("Concat", heads, options, axis=2), 2 * networks.HIDDEN, 1, gain=4)
    own = deberta.rest(graph, graph.add(graph.op("Mul", of_heads, graph.ints(3)), of_options, graph.ints(1)))
    checksums = graph.op("Mul", graph.op("Add", own, graph.ints(1)), graph.op("Add", row, graph.ints(7)))
    deberta.logits(graph, graph.op("Squeeze", both, graph.ints(2)), checksums)
    inputs = [*tiny.TOKENS, tiny.ints("seg", "rows", "length"), *(tiny.ints(name, "rows", "pairs") for name in ("pair_q", "pair_opt"))]
    tiny.save(graph, folder / "onnx/model.onnx", inputs, [tiny.floats("logits", "rows", "pairs")])
    settings = {"max_len": 512, "max_state_tokens": 256, "temperature": 1.05}
    settings |= {"packed": True} if variant == "packed" else {}
    tiny.write_json(folder / "config.json", {"architectures": ["OpenJev"], "model_type": "deberta-v2", "open_jev": settings})


def span(graph, x, products, pair):
    """[1, pairs, width], the mean over the tokens of each pair's span, and [1, pairs], their checksum."""
    seen = graph.op("Equal", graph.op("Unsqueeze", pair, graph.ints(2)), graph.op("Unsqueeze", "seg", graph.ints(1)))
    real = graph.op("Cast", seen, to=tiny.TensorProto.FLOAT)
    count = graph.op("Max", graph.op("ReduceSum", real, graph.ints(2), keepdims=1), graph.constant(1, "float32"))
    own = graph.op("Mul", graph.op("Cast", seen, to=tiny.TensorProto.INT64), graph.op("Unsqueeze", products, graph.ints(1)))
    return graph.op("Div", graph.op("MatMul", real, x), count), graph.op("ReduceSum", own, graph.ints(2), keepdims=0)


def answerer(folder, variant="apart"):
    from decision_toolkit.adapters.base import state_to_text
    from decision_toolkit.adapters.openjev import OpenJevAdapter

    engine, adapter, lengths = deberta.engine(folder, config="config.json"), OpenJevAdapter(), []
    settings, markers = engine.read_json("config")["open_jev"], OpenJevAdapter._markers(engine.tokenizer)

    def length(state, questions, *limits):
        return len(adapter._tokens(engine.tokenizer, markers, state_to_text(state), questions, *limits)[0])

    def answer(request):
        lengths.clear()
        given, state = request["questions"], deberta.state(request["state"])
        questions = {name: deberta.question(question) for name, question in given.items()}
        together = [questions] if variant == "packed" else [{name: question} for name, question in questions.items()]
        answers = {}
        for some in together:
            answers |= adapter.system_one(engine, state, some)
            lengths.append((length(state, some, sys.maxsize, sys.maxsize),
                            length(state, some, settings["max_state_tokens"], settings["max_len"])))
        return {name: oracle.by_label(given[name], deberta.probabilities(got)) for name, got in answers.items()}

    answer.lengths = lengths
    return answer


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, REFUSALS))
