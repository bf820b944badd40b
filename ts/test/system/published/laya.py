"""Laya in one graph, as decision-toolkit runs it; the variants are the English and the multilingual folder."""
import sys

import oracle
import tiny
import toolkit

CONFIG = {
    "max_len": 128, "head_max_len": 48, "temperature": [1.3, 0.2, 1.1],
    "temperature_by_options": {"choice:2": 0.9, "choice:3-5": 1.7, "choice:11+": 9.0, "score:6-10": 0.7, "noul:2": 1.25},
}


def make(folder, variant="english"):
    tokenizer = tiny.bert_tokenizer() if variant == "english" else tiny.gemma_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    graph = tiny.graph()
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), CONFIG["max_len"], kind="qtype")
    tiny.score(graph, x, "marker_pos", "marker_mask")
    tiny.act(graph, x)
    path = folder / ("model.onnx" if variant == "english" else "onnx/model.onnx")
    tiny.save(graph, path, [*tiny.TOKENS, tiny.MARKERS, tiny.MARKER_MASK, tiny.KIND], [tiny.LOGITS, tiny.ACT])
    if variant == "english":
        tiny.write_json(folder / "rl_agent_config.json", CONFIG)
    else:
        tiny.write_json(folder / "config.json", {"architectures": ["LayaModel"], "model_type": "laya", "laya": CONFIG})


def answerer(folder, variant="english"):
    english = variant == "english"
    files = {"model": "model.onnx" if english else "onnx/model.onnx", "config": "rl_agent_config.json" if english else "config.json"}
    return answers_of(folder, files, "[MASK]" if english else "<mask>")


def answers_of(folder, files, mask):
    from decision_toolkit.adapters.laya import LayaAdapter
    from decision_toolkit.engine import OnnxEngine

    engine = OnnxEngine(folder, {**files, "tokenizer": "tokenizer.json"}, threads=1)
    # The maker's own code, unlike this package, keeps the order of a state's members.
    return toolkit.answerer(LayaAdapter(), engine, mask, sort_keys=False)


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, toolkit.REFUSALS))
