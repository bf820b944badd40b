"""NoulXP packages, as noulxp runs them. The variants are

    cut     the template that noulxp gives Laya: texts are cut, a mask in a text becomes a space
    strict  the template that it gives Julia 1: no text is cut, a request with a mask in a text is refused
    other   version 0.2 with parts in another order, a token of its own, other texts, limits and instructions for questions
            without any; the graph in a folder
"""
import hashlib
import json
import sys

import oracle
import tiny

ROW = [{"token": "cls"}, {"part": "head"}, {"token": "sep"}, {"part": "options"}, {"token": "sep"}, {"part": "state"}, {"token": "sep"}]
IDS = {"choice": 0, "score": 1, "noul": 2}


def laya_options():
    return {"prefix": " ", "choice": {"described": "{name}: {description}", "bare": "{name}"},
            "score": {"described": "level {index}: {description}"},
            "noul": {"false": {"described": "false: {description}", "bare": "false: no, the statement does not hold"},
                     "true": {"described": "true: {description}", "bare": "true: yes, the statement holds"}}}


def julia_options():
    return {"prefix": " ", "choice": {"described": "{description}", "bare": "{name}"}, "score": {"described": "{description}"},
            "noul": {side: {"described": "{description}", "bare": side} for side in ("false", "true")}}


def other_options():
    return {"choice": {"described": "{index}. {name} ({description}) {other}", "bare": "{name}"},
            "score": {"described": "{name}/{index} {description}", "bare": "{name}"},
            "noul": {side: {"described": "{description} is {name}", "bare": f"{side}!"} for side in ("false", "true")}}


def template(variant):
    common = {"standard": "noulxp/0.2" if variant == "other" else "noulxp/0.1", "profile": "encoder-markers"}
    if variant == "cut":
        special = {"cls": "[CLS]", "sep": "[SEP]", "marker": "[MASK]", "pad": "[PAD]"}
        return {**common, "special_tokens": special, "question_type_ids": IDS, "layout": ROW, "head": "{type} question: {instructions}",
                "options": laya_options(), "budgets": {"total": 128, "head": 48, "option": 24}, "truncation": "truncate-state"}
    if variant == "strict":
        special = {"cls": "<bos>", "sep": "<eos>", "marker": "<mask>", "pad": "<pad>"}
        return {**common, "special_tokens": special, "question_type_ids": IDS, "layout": ROW, "head": "{type} question: {instructions}",
                "options": julia_options(), "truncation": "strict", "reserved_text": "reject",
                "budgets": {"total": 8192, "head": 4096, "option": 400, "reserve": 16, "option_floor": 4, "head_floor": 8}}
    special = {"marker": "[MASK]", "pad": "[PAD]", "sep": "[SEP]", "start": "[UNK]"}
    row = [{"token": "start"}, {"part": "state"}, {"token": "sep"}, {"part": "head"}, {"part": "options"}]
    return {**common, "special_tokens": special, "question_type_ids": {"choice": 2, "score": 0, "noul": 1}, "layout": row,
            "head": "Q: {instructions} {state}", "options": other_options(), "truncation": "truncate-state", "reserved_text": "replace",
            "budgets": {"total": 96, "head": 40, "option": 12, "reserve": 10, "option_floor": 3, "head_floor": 5},
            "instructions": {"fallback": {"choice": "Pick one.", "noul": "Is it so?"}}}


CALIBRATION = {"temperature": {"choice": 1.3, "score": 0.8}, "by_option_count": [
    {"type": "choice", "min": 2, "max": 4, "temperature": 2.2}, {"type": "choice", "min": 3, "temperature": 1.5},
    {"type": "score", "min": 6, "max": None, "temperature": 1.9}, {"type": "noul", "min": 2, "max": 2, "temperature": 0.3}]}


def make(folder, variant="cut"):
    shape = template(variant)
    tokenizer = tiny.gemma_tokenizer() if variant == "strict" else tiny.bert_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    graph = tiny.graph()
    x = tiny.encoder(graph, tokenizer.get_vocab_size(), shape["budgets"]["total"], kind="question_type")
    tiny.score(graph, x, "marker_positions", "marker_mask", name="option_logits")
    weights = "weights/fp32/decide.onnx" if variant == "other" else "model.onnx"
    places = [tiny.ints("marker_positions", "rows", "markers"), tiny.MARKER_MASK, tiny.ints("question_type", "rows")]
    tiny.save(graph, folder / weights, [*tiny.TOKENS, *places], [tiny.floats("option_logits", "rows", "markers")])
    tiny.write_json(folder / "template.json", shape)
    tiny.write_json(folder / "calibration.json", {"standard": shape["standard"], **CALIBRATION})

    def entry(path, **extra):
        return {"path": path, "sha256": hashlib.sha256((folder / path).read_bytes()).hexdigest(), **extra}

    limits = {"max_tokens": shape["budgets"]["total"], "max_options": 60 if variant != "other" else 30, **({"max_levels": 9} if variant == "other" else {})}
    manifest = {"standard": shape["standard"], "name": f"tiny {variant}", "profile": "encoder-markers", "weights": entry(weights, format="onnx", opset=17),
                "tokenizer": entry("tokenizer.json"), "template": entry("template.json"), "calibration": entry("calibration.json"),
                "limits": limits, "answers": {"confidence": {"choice": "typesafe"}}}
    tiny.write_json(folder / "noulxp.json", manifest)
    if variant == "cut":
        add_conformance(folder, manifest)


def add_conformance(folder, manifest):
    """Adds the requests that come with noulxp, and the answers of its runtime to them."""
    from noulxp import conformance

    answer = answerer(folder)
    cases = []
    for case in conformance.read_jsonl(conformance.DEFAULT_REQUESTS):
        got = oracle.one(answer, case["request"], refusals())
        if "error" in got:
            cases.append({**case, "error": {"type": "RequestError", "message": got["error"]}})
            continue
        questions = case["request"]["questions"]
        cases.append({**case, "expected": {name: {"type": questions[name]["type"], "probabilities": p} for name, p in got["answers"].items()}})
    text = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    (folder / "conformance.jsonl").write_text(text, encoding="utf-8")
    manifest["conformance"] = {"path": "conformance.jsonl", "sha256": hashlib.sha256(text.encode()).hexdigest(), "cases": len(cases)}
    tiny.write_json(folder / "noulxp.json", manifest)


def answerer(folder, variant="cut"):
    from noulxp.package import Package, find_manifest
    from noulxp.runtime import load

    path = find_manifest(folder)
    runtime = load(Package(folder, json.loads(path.read_text(encoding="utf-8")), path.name), device="cpu", threads=1)
    runtime.tokens.backend.encode_special_tokens = True  # special tokens in a text are text

    def answer(request):
        found, _ = runtime.distributions(request["state"], request["questions"])
        return {question.id: oracle.by_label(request["questions"][question.id], p) for question, p in found}

    return answer


def refusals():
    from noulxp.errors import RequestError

    return RequestError


if __name__ == "__main__":
    sys.exit(oracle.main(make, answerer, refusals() if sys.argv[1] == "answer" else ()))
