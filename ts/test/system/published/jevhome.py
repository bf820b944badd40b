"""The models of jevhome whose head scores the markers. They have no package: the code here follows their contract alone."""
import json
import sys

import numpy as np
import oracle
import tiny

KINDS = ["choice", "score", "noul"]
CALIBRATION = {"_fitted_on": "nothing", "choice:2": 0.9, "choice:3-5": {"T": 1.7}, "choice:11+": {"T": 6.5, "n": 3},
               "score:3-5": 0.4, "score:6-10": {"T": 1.2}, "noul:2": {"T": 1.4}}
PROPOSITION = {True: "The proposition is true.", False: "The proposition is false."}


def make(folder):
    tokenizer = tiny.bert_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "mask", "pad")}
    tiny.write_json(folder / "tokenizer_config.json", names)
    tiny.write_json(folder / "config.json", {"architectures": ["ModernBertModel"], "model_type": "modernbert"})
    tiny.write_json(folder / "decision_config.json", {"head": "h2", "head_layers": 0, "typed": False, "ordinal": False})
    tiny.write_json(folder / "calibration_u.json", CALIBRATION)
    graph = tiny.graph()
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), positions=512, kind="qtype")
    tiny.score(graph, x, "marker_pos")
    tiny.save(graph, folder / "model.onnx", [*tiny.TOKENS, tiny.MARKERS, tiny.KIND], [tiny.LOGITS])


class TooLong(Exception):
    """The options do not fit into a row."""


class Reference:
    def __init__(self, folder):
        import onnxruntime
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
        self.calibration = json.loads((folder / "calibration_u.json").read_text())

    def tokens(self, text):
        return self.tokenizer.encode(text.replace("[MASK]", " "), add_special_tokens=False).ids

    def options(self, question):
        """The texts in the model's order, and the place of each in the caller's."""
        kind, criteria = question["type"], question.get("criteria")
        if kind == "choice":
            pairs = criteria.items() if isinstance(criteria, dict) else [(name, None) for name in criteria]
            texts = [f"{name}: {text if isinstance(text, str) and text else name}" for name, text in pairs]
            return texts, list(range(len(texts)))
        if kind == "score":
            return [f"{i}: {text}" for i, text in enumerate(criteria)], list(range(len(criteria)))
        sides = [(side, (criteria or {}).get(str(side).lower()) or PROPOSITION[side]) for side in (True, False)]
        return [f"{str(side).lower()}: {text}" for side, text in sides], [1, 0]

    def row(self, state, question):
        mask, cls, sep = (self.tokenizer.token_to_id(name) for name in ("[MASK]", "[CLS]", "[SEP]"))
        texts, places = self.options(question)
        head = self.tokens(f"{question['type']} question: {question.get('instructions') or ''}")
        options = [[mask, *self.tokens(f" {text}")[:48]] for text in texts]
        left = 320 - sum(map(len, options))
        if left < 16:
            each = max(4, (320 - 16) // len(options))
            options = [option[:each] for option in options]
            left = 320 - sum(map(len, options))
        ids, markers = [cls, *head[:max(8, left)], sep], []
        for option in options:
            markers.append(len(ids))
            ids += option
        ids.append(sep)
        ids += [*self.tokens(state)[:max(0, 512 - len(ids) - 1)], sep]
        if markers[-1] >= 512:
            raise TooLong
        return ids[:512], markers, places

    def temperature(self, kind, count):
        size = "2" if count <= 2 else "3-5" if count <= 5 else "6-10" if count <= 10 else "11+"
        value = self.calibration.get(f"{kind}:{size}", 1.0)
        return value["T"] if isinstance(value, dict) else value

    def question(self, state, question):
        ids, markers, places = self.row(state, question)
        inputs = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "marker_pos": [markers], "qtype": [KINDS.index(question["type"])]}
        logits, = self.session.run(None, {name: np.array(value, np.int64) for name, value in inputs.items()})
        scaled = logits[0].astype(np.float64) / self.temperature(question["type"], len(markers))
        odds = np.exp(scaled - scaled.max())
        p = np.empty(len(places))
        p[places] = odds / odds.sum()
        return oracle.by_label(question, p)


def answerer(folder):
    reference = Reference(folder)

    def answer(request):
        state = request["state"]
        state = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
        return {name: reference.question(state, question) for name, question in request["questions"].items()}

    return answer


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, TooLong))
