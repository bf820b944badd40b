"""Reads a model folder in the server's way, as the reference that exports are compared with."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

from ..calibration.fitting import applied
from ..data.layout import option_texts, state_text
from ..calibration.metrics import Array, softmax

Memory = list[np.ndarray]


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Folder:
    """Answers questions with a `shared-state` folder, with one run per chunk and one per question."""

    def __init__(self, path: Path, threads: int = 1, settings: dict[str, str] | None = None) -> None:
        self.path, self.config = path, json.loads((path / "config.json").read_text(encoding="utf-8"))
        options = ort.SessionOptions()
        options.enable_mem_pattern, options.intra_op_num_threads, options.log_severity_level = False, threads, 3
        for key, value in (settings or {}).items():
            options.add_session_config_entry(key, value)
        self.session = ort.InferenceSession(str(path / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        self.past = [f"past_{kind}{i}" for i in range(self.config["layers"]) for kind in "kv"]
        self.present = [name.replace("past", "present") for name in self.past]
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.kept: tuple[str, Memory, int] | None = None

    def tokens(self, text: str) -> list[int]:
        """Returns the ids of a text, without special tokens."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def empty(self) -> Memory:
        """Returns the memory of an empty state."""
        return [np.zeros((1, self.config["heads"], 0, self.config["head_dim"]), np.float32) for _ in self.past]

    def memory(self, state: str) -> tuple[Memory, int]:
        """Returns the state's keys and values, and its number of tokens; those of the last state are kept."""
        if self.kept is None or self.kept[0] != state:
            special, step = self.config["special_ids"], self.config["chunk"] - 2
            ids, parts = self.tokens(state)[: self.config["state_max"]], []
            for start in range(0, len(ids), step):
                chunk = [special["cls"], *ids[start : start + step], special["sep"]]
                parts.append(
                    self.run(self.present, chunk, list(range(len(chunk))), 0, [0] * len(chunk), [], self.empty())
                )
            joined = [np.concatenate(part, axis=2) for part in zip(*parts)] if parts else self.empty()
            self.kept = (state, joined, joined[0].shape[2])
        return self.kept[1], self.kept[2]

    def feed(
        self, ids: list[int], positions: list[int], kind: int, option_ids: list[int], markers: list[int]
    ) -> dict[str, np.ndarray]:
        """Returns the inputs of a run, without its memory."""
        values = {
            "input_ids": ids,
            "positions": positions,
            "types": [kind] * len(ids),
            "option_ids": option_ids,
            "markers": markers,
        }
        return {name: np.array(value, np.int64) for name, value in values.items()}

    def run(
        self,
        outputs: list[str],
        ids: list[int],
        positions: list[int],
        kind: int,
        option_ids: list[int],
        markers: list[int],
        memory: Memory,
    ) -> list[np.ndarray]:
        """Runs the graph once and returns its outputs."""
        return self.session.run(
            outputs, {**self.feed(ids, positions, kind, option_ids, markers), **dict(zip(self.past, memory))}
        )

    def ask(self, state: str, question: dict[str, Any]) -> tuple[Array, float | None, int]:
        """Returns the logits in the caller's order, the probability that the top answer is right (None if the graph has
        no such output), and the number of tokens read."""
        memory, _ = self.memory(state)
        special, kind, texts = self.config["special_ids"], question["type"], option_texts(question)
        order = (
            sorted(range(len(texts)), key=lambda i: texts[i].encode()) if kind == "choice" else list(range(len(texts)))
        )
        head = self.tokens(self.config["head_prefix"][kind] + question.get("instructions", ""))[
            : self.config["head_max"] - 2
        ]
        options = [[special["mask"], *self.tokens(texts[i])[: self.config["option_max"] - 1]] for i in order]
        head = [special["cls"], *head, special["sep"]]
        runs, logits, act, count = self.split(len(head), options), np.empty(len(texts)), None, 0
        for part in runs:
            ids, positions, option_ids, markers = list(head), list(range(len(head))), [0] * len(head), []
            for number, i in enumerate(part, start=1):
                markers.append(len(ids))
                ids += options[i]
                positions += range(len(head), len(head) + len(options[i]))
                option_ids += [number] * len(options[i])
            names = ["logits", "act_logits"] if "act_logits" in self.outputs else ["logits"]
            found = self.run(names, ids, positions, self.config["type_ids"][kind], option_ids, markers, memory)
            logits[[order[i] for i in part]] = found[0]
            if act is None and len(found) > 1:
                act = float(softmax(found[1].astype(np.float64))[0])
            count += len(ids)
        return logits, act, count

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

    def probabilities(self, state: Any, question: dict[str, Any]) -> Array:
        """Returns the probabilities in the caller's order."""
        return softmax(*applied(self.config, question, self.ask(state_text(state), question)[0]))

    def golden(self, state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        """Returns a request with its answers, as a line of `golden.jsonl`."""
        text, answers = state_text(state), {}
        count = self.memory(text)[1]
        for name, question in questions.items():
            logits, _, tokens = self.ask(text, question)
            values = softmax(*applied(self.config, question, logits))
            answers[name] = dict(zip(labels(question), (round(float(value), 6) for value in values)))
            count += tokens
        return {"request": {"state": state, "questions": questions}, "probabilities": answers, "input_tokens": count}


def labels(question: dict[str, Any]) -> list[str]:
    """Returns the names of a question's probabilities."""
    if question["type"] == "noul":
        return ["false", "true"]
    return (
        list(question["criteria"])
        if question["type"] == "choice"
        else [str(i) for i in range(len(question["criteria"]))]
    )
