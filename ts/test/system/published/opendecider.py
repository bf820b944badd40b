"""OpenDecider nano, as decision-toolkit runs it."""
import sys

import oracle
import tiny
import toolkit

MAX_LEN = 640


def make(folder):
    tokenizer = tiny.bert_tokenizer()
    (folder / "tokenizer.web.json").write_text(tokenizer.to_str(), encoding="utf-8")
    ids = {name: tokenizer.token_to_id(f"[{name.upper()}]") for name in ("cls", "sep", "mask")}
    tiny.write_json(folder / "opendecider.json", {"max_len": MAX_LEN, "special_ids": ids})
    graph = tiny.graph()
    tiny.score(graph, tiny.encoder(graph, tokenizer.get_vocab_size(), MAX_LEN))
    tiny.save(graph, folder / "onnx" / "model.onnx", tiny.TOKENS, [tiny.floats("logits", "rows", "length")])


def answerer(folder):
    from decision_toolkit.adapters.opendecider import OpendeciderAdapter
    from decision_toolkit.engine import OnnxEngine
    from decision_toolkit.errors import AdapterError

    class Adapter(OpendeciderAdapter):
        """The adapter; it would fail with an IndexError, or drop options, where not all of them have a score."""

        def _scores(self, engine, state_text, instructions, options, *others):
            scores, truncated = super()._scores(engine, state_text, instructions, options, *others)
            if len(scores) < len(options):
                raise AdapterError("the options do not fit")
            return scores, truncated

    files = {"model": "onnx/model.onnx", "tokenizer": "tokenizer.web.json", "config": "opendecider.json"}
    return toolkit.answerer(Adapter(), OnnxEngine(folder, files, threads=1), "[MASK]", sort_keys=True)


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, toolkit.REFUSALS))
