"""The frame of the programs here: each makes a tiny model folder in its maker's form, and answers with its maker's code.

    python laya.py make FOLDER [VARIANT]
    python laya.py answer FOLDER [VARIANT] < requests.jsonl > answers.jsonl

A request is a body of /v1/systemone on one line. An answer is {"answers": {question: {label: probability}}}, with the
counts of `usage` that the maker's code gives, or {"error": reason} where it refuses the request.
"""
import json
import sys
from pathlib import Path


def main(make, answerer, refusals, transformers=False):
    """Runs a program. `answerer(folder, variant)` returns a function from a request to its answers, or to them and a usage.

    `refusals` are the exceptions by which the maker's code refuses a request; any other ends the program. Without
    `transformers` that package counts as missing: with it decision-toolkit reads tokenizers in another way.
    """
    if not transformers:
        sys.modules["transformers"] = None
    verb, folder, *variant = sys.argv[1:]
    if verb == "make":
        Path(folder).mkdir(parents=True)
        return make(Path(folder), *variant)
    answer = answerer(Path(folder), *variant)
    for line in sys.stdin:
        print(json.dumps(one(answer, json.loads(line), refusals)), flush=True)


def one(answer, request, refusals):
    try:
        got = answer(request)
        if hasattr(answer, "lengths"):
            return {"answers": got, "usage": usage(answer.lengths)}
        answers, *counts = got if isinstance(got, tuple) else (got,)
        return {"answers": answers, **({"usage": counts[0]} if counts else {})}
    except refusals as error:
        return {"error": f"{type(error).__name__}: {error}"}


def usage(lengths):
    """The tokens of a request's rows; `lengths` has for each row how long it would be uncut, and how long it is."""
    return {"input_tokens": sum(read for _, read in lengths), "truncated_tokens": sum(whole - read for whole, read in lengths)}


def by_label(question, probabilities):
    """The probabilities of a question by our labels; `probabilities` has them in the caller's order, a noul's false first."""
    kind, criteria = question["type"], question.get("criteria")
    labels = ["false", "true"] if kind == "noul" else [str(i) for i in range(len(criteria))] if kind == "score" else list(criteria)
    return {label: float(p) for label, p in zip(labels, probabilities, strict=True)}


def replaced(value, mask, by=" "):
    """A copy of a JSON value in which `mask` is replaced in all texts, the names of members among them."""
    if isinstance(value, str):
        return value.replace(mask, by)
    if isinstance(value, dict):
        return {replaced(key, mask, by): replaced(item, mask, by) for key, item in value.items()}
    return [replaced(item, mask, by) for item in value] if isinstance(value, list) else value
