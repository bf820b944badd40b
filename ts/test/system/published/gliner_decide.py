"""GLiNER2.5-Decide, as decision-toolkit runs it."""
import sys

import deberta
import networks
import oracle
import tiny
import toolkit
from tokenizers import Regex, normalizers

ADDED = ["[SEP_STRUCT]", "[SEP_TEXT]", "[P]", "[C]", "[E]", "[R]", "[L]", "[EXAMPLE]", "[OUTPUT]", "[DESCRIPTION]"]
# The adapter writes this token into a text itself.
MARK = "[DESCRIPTION]"
# Where a request has such a token in a text, other characters stand for it until the text is tokenized.
WRITTEN = {name: f"\ue000{name[1:-1]}\ue001" for name in ADDED}
MAX_LEN = 2048  # ours: the adapter has no limit


def make(folder):
    # As version 4 of transformers converts DeBERTa-v3's, with NFKC in place of a compiled table of characters.
    cleaned = [normalizers.Strip(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer = deberta.tokenizer(ADDED, normalizers.Sequence(cleaned))
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    graph = tiny.graph()
    x, places = deberta.encoder(graph, tokenizer.get_vocab_size())
    marked = graph.op("GatherND", x, graph.op("Unsqueeze", "marker_positions", graph.ints(2)), batch_dims=1)
    scores = graph.op("Squeeze", graph.linear(marked, networks.HIDDEN, 1, gain=4), graph.ints(2))
    row = deberta.rest(graph, graph.op("ReduceSum", deberta.products(graph, places), graph.ints(1), keepdims=1))
    # The row's checksum has another factor at each marker, else it would shift all logits alike.
    factors = graph.op("Add", "marker_positions", graph.ints(7))
    deberta.logits(graph, scores, graph.op("Mul", graph.op("Add", row, graph.ints(1)), factors))
    markers = tiny.ints("marker_positions", "rows", "markers")
    tiny.save(graph, folder / "onnx/model.onnx", [*tiny.TOKENS, markers], [tiny.LOGITS])
    tiny.write_json(folder / "config.json", {"architectures": ["Extractor"], "model_type": "extractor", "max_width": 8})


class Tokenizer:
    """A tokenizer that finds special tokens only where the adapter has written them."""

    def __init__(self, file):
        self.plain = deberta.without_specials(file)

    def encode(self, text, add_special_tokens):
        if text in ADDED:
            return [self.plain.token_to_id(text)]
        ids = []
        for i, part in enumerate(text.split(MARK)):
            ids += [self.plain.token_to_id(MARK)] if i else []
            for name, written in WRITTEN.items():
                part = part.replace(written, name)
            ids += self.plain.encode(part, add_special_tokens=add_special_tokens).ids
        return ids


class TooLong(Exception):
    """A question and its options are longer than a row."""


REFUSALS = (toolkit.REFUSALS, TooLong)


class Session:
    """The session of a graph that reads no more of a row than the engine does; it notes the lengths of the rows."""

    def __init__(self, session, end_of_question):
        self.session, self.end_of_question, self.lengths = session, end_of_question, []

    def run(self, outputs, inputs):
        ids = list(inputs["input_ids"][0])
        if ids.index(self.end_of_question) >= MAX_LEN:
            raise TooLong
        cut = {name: inputs[name][:, :MAX_LEN] for name in ("input_ids", "attention_mask")}
        self.lengths.append((len(ids), cut["input_ids"].shape[1]))
        return self.session.run(outputs, {**inputs, **cut})


def answerer(folder):
    from decision_toolkit.adapters.gliner2_decide import Gliner2DecideAdapter

    tokenizer, adapter = Tokenizer(folder / "tokenizer.json"), Gliner2DecideAdapter()
    engine = deberta.engine(folder, tokenizer)
    session = Session(engine.session("model"), tokenizer.plain.token_to_id("[SEP_TEXT]"))
    engine._sessions["model"] = session

    def answer(request):
        session.lengths.clear()
        given = request["questions"]
        for name, written in WRITTEN.items():
            given = oracle.replaced(given, name, by=written)
        questions = {name: deberta.question(question) for name, question in given.items()}
        answers = adapter.system_one(engine, deberta.state(request["state"]), questions)
        return {name: oracle.by_label(request["questions"][name], deberta.probabilities(got)) for name, got in answers.items()}

    answer.lengths = session.lengths
    return answer


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, REFUSALS))
