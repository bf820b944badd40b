"""What the programs that ask decision-toolkit share."""
import deberta
from decision_toolkit.adapters.base import state_to_text as text
from decision_toolkit.engine import OnnxEngine
from decision_toolkit.errors import AdapterError

__all__ = ["REFUSALS", "engine", "probabilities", "question", "state", "text"]
REFUSALS = AdapterError


def engine(folder, tokenizer=None, **files):
    """The toolkit's engine on a folder, for which special tokens in a text are text."""
    made = OnnxEngine(folder, {"model": "onnx/model.onnx", **files}, threads=1)
    made._tokenizer = tokenizer or deberta.without_specials(folder / "tokenizer.json")
    return made


def state(value):
    """A state as an adapter takes it: a state that is `true`, `false` or `null` has no text of its own there."""
    return {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else value


def question(given):
    """A question as an adapter takes it: a choice without descriptions is a list of names only in our API."""
    criteria = given.get("criteria")
    is_list = given["type"] == "choice" and isinstance(criteria, list)
    return {**given, "criteria": dict.fromkeys(criteria) if is_list else criteria}


def probabilities(answer):
    """The probabilities of an answer in the caller's order, a noul's false first."""
    values = answer["probabilities"]
    return [values["false"], values["true"]] if answer["type"] == "noul" else list(values.values())
