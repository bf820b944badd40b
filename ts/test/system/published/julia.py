"""Julia 1, as decision-toolkit runs it."""
import sys

import oracle
import tiny
import toolkit


def make(folder):
    tokenizer = tiny.gemma_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    graph = tiny.graph()
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), positions=1024, kind="qtype")
    tiny.score(graph, x, "marker_pos", "marker_mask")
    tiny.save(graph, folder / "model.onnx", [*tiny.TOKENS, tiny.MARKERS, tiny.MARKER_MASK, tiny.KIND], [tiny.LOGITS])


def answerer(folder):
    from decision_toolkit.adapters.julia import JuliaAdapter
    from decision_toolkit.engine import OnnxEngine

    engine = OnnxEngine(folder, {"model": "model.onnx", "tokenizer": "tokenizer.json"}, threads=1)
    return toolkit.answerer(JuliaAdapter(), engine, "<mask>", sort_keys=True)


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, toolkit.REFUSALS))
