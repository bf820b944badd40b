"""Answers of decision-toolkit's adapters.

Two things differ from the package as it is, in all families: a special token written in a text is text for the tokenizer,
and a mask written in a text becomes a space. The package would take both for real tokens.
"""
import json

import oracle
from tokenizers import Tokenizer

try:
    from decision_toolkit.errors import AdapterError
except ImportError:  # the program only makes a folder
    AdapterError = ()

# The package refuses options that do not fit; one of its adapters finds out only when it pairs them with their scores.
REFUSALS = AdapterError


def answerer(adapter, engine, mask, sort_keys):
    """Returns a function from a request to its answers; `sort_keys` is about the members of a state that is JSON."""
    # Where `transformers` is installed, the package would take its tokenizer, which has no such setting.
    engine._tokenizer = Tokenizer.from_file(str(engine.path("tokenizer")))
    engine.tokenizer.encode_special_tokens = True

    def answer(request):
        state = request["state"]
        state = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False, sort_keys=sort_keys)
        answers = {}
        for name, question in request["questions"].items():
            asked = oracle.replaced({"criteria": None, **question}, mask)
            if isinstance(asked["criteria"], list) and asked["type"] == "choice":
                asked["criteria"] = dict.fromkeys(asked["criteria"])
            got = adapter.system_one(engine, state.replace(mask, " "), {name: asked})[name]["probabilities"]
            p = [got["false"], got["true"]] if asked["type"] == "noul" else list(got.values())
            answers[name] = oracle.by_label(question, p)
        return answers

    return answer
