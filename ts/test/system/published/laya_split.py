"""Laya with a graph for its encoder and one for its head, as decision-toolkit runs it.

The variant "q8" has the file names and the separate weights of the English folder, and wants a question's type as a table;
"plain" has the usual names and wants it as a list. Both graphs give the same names to different values.
"""
import sys

import laya
import networks
import onnx
import oracle
import tiny
import toolkit

HIDDEN = {"q8": "hidden_states", "plain": "last_hidden_state"}


def make(folder, variant="q8"):
    tokenizer, ending = tiny.bert_tokenizer(), endings(variant)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tiny.write_json(folder / "rl_agent_config.json", laya.CONFIG)
    graph, states = tiny.graph(), ["rows", "length", networks.HIDDEN]
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), laya.CONFIG["max_len"])
    graph.op("Identity", x, name="last_hidden_state")
    tiny.save(graph, folder / f"encoder{ending}", tiny.TOKENS, [tiny.floats("last_hidden_state", *states)])
    graph, hidden = tiny.graph(seed=28), HIDDEN[variant]
    kind = graph.table(3, "qtype")
    x = graph.norm(graph.op("Add", hidden, kind if variant == "q8" else graph.op("Unsqueeze", kind, graph.ints(1))))
    x = graph.layer(x, networks.padding_bias(graph))
    tiny.score(graph, x, "marker_pos", "marker_mask", name="scores")
    tiny.act(graph, x, name="acts")
    kind = tiny.ints("qtype", "rows", 1) if variant == "q8" else tiny.KIND
    inputs = [tiny.floats(hidden, *states), tiny.TOKENS[1], tiny.MARKERS, tiny.MARKER_MASK, kind]
    tiny.save(graph, folder / f"head{ending}", inputs, [tiny.floats("scores", "rows", "markers"), tiny.floats("acts", "rows", 2)])
    if variant == "q8":
        for part in ("encoder", "head"):
            put_weights_beside(folder / f"{part}{ending}")


def put_weights_beside(path):
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=256)


def endings(variant):
    return "_q8.onnx" if variant == "q8" else ".onnx"


def answerer(folder, variant="q8"):
    files = {part: f"{part}{endings(variant)}" for part in ("encoder", "head")}
    return laya.answers_of(folder, {**files, "config": "rl_agent_config.json"}, "[MASK]")


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, toolkit.REFUSALS))
