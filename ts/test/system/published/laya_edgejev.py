"""Laya in one graph with the rows of edgejev, which replaces a mask in a text and writes a JSON state as Laya's own code does.

So nothing in a request has to be changed for it, except that special tokens in a text are text.
"""
import sys

import laya
import numpy as np
import oracle

KINDS = ["choice", "score", "noul"]


class Encoder:
    """The tokenizer as edgejev expects it."""

    def __init__(self, folder, english):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        names = ("[MASK]", "[CLS]", "[SEP]", "[PAD]") if english else ("<mask>", "<bos>", "<eos>", "<pad>")
        self.mask_token = names[0]
        self.mask_id, self.cls_id, self.sep_id, self.pad_id = map(self.tokenizer.token_to_id, names)

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def temperature(kind, count):
    size = "2" if count <= 2 else "3-5" if count <= 5 else "6-10" if count <= 10 else "11+"
    own = laya.CONFIG["temperature"][KINDS.index(kind)]
    return float(np.clip(laya.CONFIG["temperature_by_options"].get(f"{kind}:{size}", own), 0.5, 5.0))


def answerer(folder, variant="english"):
    import onnxruntime
    from edgejev.core.layout import per_question_row
    from edgejev.core.render import to_internal

    encoder = Encoder(folder, variant == "english")
    path = folder / ("model.onnx" if variant == "english" else "onnx/model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def answer(request):
        answers = {}
        for name, question in request["questions"].items():
            encoded = per_question_row(encoder, request["state"], [to_internal({"instructions": "", **question})], laya.CONFIG)
            logits = session.run(["logits"], encoded.feed)[0][0].astype(np.float64)
            scaled = logits / temperature(question["type"], len(logits))
            odds = np.exp(scaled - scaled.max())
            answers[name] = oracle.by_label(question, odds / odds.sum())
        return answers

    return answer


if __name__ == "__main__":
    sys.exit(oracle.main(laya.make, answerer, ValueError))
