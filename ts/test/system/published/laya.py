"""Laya in one graph, as decision-toolkit runs it.

The variants are the English and the multilingual folder, and an English one whose graph takes the mask of markers as int64.
"""
import sys

import oracle
import tiny
import toolkit

CONFIG = {
    "max_len": 128, "head_max_len": 48, "temperature": [1.3, 0.2, 1.1],
    "temperature_by_options": {"choice:2": 0.9, "choice:3-5": 1.7, "choice:11+": 9.0, "score:6-10": 0.7, "noul:2": 1.25},
}


def make(folder, variant="english"):
    tokenizer = tiny.gemma_tokenizer() if variant == "multilingual" else tiny.bert_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    graph = tiny.graph()
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), CONFIG["max_len"], kind="qtype")
    whole = variant == "whole-mask"
    tiny.score(graph, x, "marker_pos", graph.op("Cast", "marker_mask", to=tiny.TensorProto.BOOL) if whole else "marker_mask")
    tiny.act(graph, x)
    path = folder / ("onnx/model.onnx" if variant == "multilingual" else "model.onnx")
    mask = tiny.ints("marker_mask", "rows", "markers") if whole else tiny.MARKER_MASK
    tiny.save(graph, path, [*tiny.TOKENS, tiny.MARKERS, mask, tiny.KIND], [tiny.LOGITS, tiny.ACT])
    if variant != "multilingual":
        tiny.write_json(folder / "rl_agent_config.json", CONFIG)
    else:
        tiny.write_json(folder / "config.json", {"architectures": ["LayaModel"], "model_type": "laya", "laya": CONFIG})


class WholeMask:
    """A session for which the mask of markers, which the package gives as flags, becomes whole numbers."""

    def __init__(self, session):
        self.session = session

    def run(self, outputs, inputs):
        return self.session.run(outputs, {**inputs, "marker_mask": inputs["marker_mask"].astype("int64")})


def answerer(folder, variant="english"):
    english = variant != "multilingual"
    files = {"model": "model.onnx" if english else "onnx/model.onnx", "config": "rl_agent_config.json" if english else "config.json"}
    return answers_of(folder, files, "[MASK]" if english else "<mask>", WholeMask if variant == "whole-mask" else None)


def answers_of(folder, files, mask, wrapped=None):
    from decision_toolkit.adapters.laya import LayaAdapter
    from decision_toolkit.engine import OnnxEngine

    engine = OnnxEngine(folder, {**files, "tokenizer": "tokenizer.json"}, threads=1)
    if wrapped:
        engine._sessions["model"] = wrapped(engine.session("model"))
    # The maker's own code, unlike this package, keeps the order of a state's members.
    return toolkit.answerer(LayaAdapter(), engine, mask, sort_keys=False)


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, toolkit.REFUSALS))
