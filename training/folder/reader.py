"""Reads a model folder in the server's way, as the reference that exports are compared with."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

from ..calibration.fitting import applied
from ..calibration.metrics import Array, softmax
from ..data.files import object_in
from ..data.layout import option_texts, state_text, well_formed
from ..data.question import ServedQuestion, option_keys
from ..data.rows import State
from ..data.unified import reading_of

# A name and a question for each answer.
Questions = dict[str, ServedQuestion]
Request = tuple[State, Questions]
# The keys and values of a state, layer by layer.
KvCache = list[np.ndarray]
Tensors = dict[str, np.ndarray]


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class RequestBody(TypedDict):
    """A request in JSON."""

    state: State
    questions: Questions


class Golden(TypedDict):
    """A request with its answers, as a line of `golden.jsonl`."""

    request: RequestBody
    probabilities: dict[str, dict[str, float]]
    input_tokens: int


@dataclass(frozen=True)
class TokenSequence:
    """The tokens of a run: their ids, positions and options (0 for none), the type of their question (0 for a state),
    the places of the markers, and the number of options of the question, which can have several runs."""

    ids: list[int]
    positions: list[int]
    kind: int
    option_ids: list[int]
    markers: list[int]
    option_count: int = 0


@dataclass(frozen=True)
class Answer:
    """The logits in the caller's order, the probability that the top answer is right (None if the graph has no such
    output), and the number of tokens read."""

    logits: Array
    act: float | None
    tokens: int


def make_session(graph: str | bytes, threads: int = 1) -> ort.InferenceSession:
    """Returns a session of a graph, which is a path or the graph itself, on the processor."""
    options = ort.SessionOptions()
    options.enable_mem_pattern, options.intra_op_num_threads, options.log_severity_level = False, threads, 3
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


class Folder:
    """Answers questions with a `shared-state` folder, with one run per chunk and one per question."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        self.path = path
        self.config: Any = object_in(path / "config.json")
        self.session = make_session(str(path / "model.onnx"), threads)
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        self.past = [f"past_{kind}{i}" for i in range(self.config["layers"]) for kind in "kv"]
        self.present = [name.replace("past", "present") for name in self.past]
        self.counts_options = "option_count" in (given.name for given in self.session.get_inputs())
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.prefilled: tuple[str, KvCache] | None = None

    def tokens(self, text: str) -> list[int]:
        """Returns the ids of a text, without special tokens."""
        return self.tokenizer.encode(well_formed(text), add_special_tokens=False).ids

    def empty(self) -> KvCache:
        """Returns the keys and values of an empty state."""
        return [np.zeros((1, self.config["heads"], 0, self.config["head_dim"]), np.float32) for _ in self.past]

    def prefill(self, state: str) -> KvCache:
        """Returns the state's keys and values; those of the last state are kept."""
        if self.prefilled is None or self.prefilled[0] != state:
            special, step = self.config["special_ids"], self.config["chunk"] - 2
            ids, parts = self.tokens(state)[: self.config["state_max"]], []
            for start in range(0, len(ids), step):
                chunk = [special["cls"], *ids[start : start + step], special["sep"]]
                sequence = TokenSequence(chunk, list(range(len(chunk))), 0, [0] * len(chunk), [])
                parts.append(self.run(self.present, sequence, self.empty()))
            joined = [np.concatenate(part, axis=2) for part in zip(*parts)] if parts else self.empty()
            self.prefilled = state, joined
        return self.prefilled[1]

    def feed(self, sequence: TokenSequence) -> Tensors:
        """Returns the inputs of a run, without its keys and values."""
        values = {
            "input_ids": sequence.ids,
            "positions": sequence.positions,
            "types": [sequence.kind] * len(sequence.ids),
            "option_ids": sequence.option_ids,
            "markers": sequence.markers,
        }
        if self.counts_options:
            values["option_count"] = [sequence.option_count]
        return {name: np.array(value, np.int64) for name, value in values.items()}

    def run(self, outputs: list[str], sequence: TokenSequence, past: KvCache) -> list[np.ndarray]:
        """Runs the graph once and returns its outputs."""
        return self.session.run(outputs, {**self.feed(sequence), **dict(zip(self.past, past))})

    def ask(self, state: str, question: ServedQuestion) -> Answer:
        """Returns the answer to a question about a state."""
        reading = reading_of(question, self.config.get("unify", False))
        past, special, kind = self.prefill(state), self.config["special_ids"], reading.question["type"]
        texts = option_texts(reading.question)
        order = list(range(len(texts)))
        if kind == "choice":
            order.sort(key=lambda i: texts[i].encode())
        instructions = self.tokens(self.config["head_prefix"][kind] + question.get("instructions", ""))
        head = [special["cls"], *instructions[: self.config["head_max"] - 2], special["sep"]]
        options = [[special["mask"], *self.tokens(texts[i])[: self.config["option_max"] - 1]] for i in order]
        names = ["logits", "act_logits"] if "act_logits" in self.outputs else ["logits"]
        logits, act, count = np.empty(len(texts)), None, 0
        for part in self.split(len(head), options):
            sequence = laid_out(head, [options[i] for i in part], self.config["type_ids"][kind], len(options))
            found = self.run(names, sequence, past)
            logits[[order[i] for i in part]] = found[0]
            if act is None and len(found) > 1:
                act = float(softmax(found[1].astype(np.float64))[0])
            count += len(sequence.ids)
        return Answer(logits[reading.places], act, count)

    def split(self, head: int, options: list[list[int]]) -> list[list[int]]:
        """Returns the options of each run, which are as many as fit into `run_tokens`."""
        runs: list[list[int]] = [[]]
        used = head
        for i, option in enumerate(options):
            if runs[-1] and used + len(option) > self.config["run_tokens"]:
                runs.append([])
                used = head
            runs[-1].append(i)
            used += len(option)
        return runs

    def probabilities(self, state: State, question: ServedQuestion) -> Array:
        """Returns the probabilities in the caller's order."""
        return softmax(*applied(self.config, question, self.ask(state_text(state), question).logits))

    def golden(self, state: State, questions: Questions) -> Golden:
        """Returns a request with its answers."""
        text, probabilities = state_text(state), {}
        count = self.prefill(text)[0].shape[2]
        for name, question in questions.items():
            answer = self.ask(text, question)
            values = softmax(*applied(self.config, question, answer.logits))
            rounded = (round(float(value), 6) for value in values)
            probabilities[name] = dict(zip(option_keys(question), rounded))
            count += answer.tokens
        request: RequestBody = {"state": state, "questions": questions}
        return {"request": request, "probabilities": probabilities, "input_tokens": count}


def laid_out(head: list[int], options: list[list[int]], kind: int, count: int) -> TokenSequence:
    """Returns a question's head and some of its options, of which there are `count`, as one sequence."""
    ids, positions, option_ids, markers = list(head), list(range(len(head))), [0] * len(head), []
    for number, option in enumerate(options, start=1):
        markers.append(len(ids))
        ids += option
        positions += range(len(head), len(head) + len(option))
        option_ids += [number] * len(option)
    return TokenSequence(ids, positions, kind, option_ids, markers, count)
