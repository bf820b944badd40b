"""Decisions on a `marker` folder: request to rows, rows to one padded run, logits to answers."""
import json
import os
import threading
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

TYPES = {"choice": 0, "score": 1, "noul": 2}
NOUL_TEXTS = {"false": "no, the statement does not hold", "true": "yes, the statement holds"}
# The most tokens of one run, padding included: more of them only take memory, 50 MB of attention for a row of 1,000.
BATCH_TOKENS = 16_384


class Decisions:
    """A loaded model folder."""

    def __init__(self, folder, threads):
        folder = Path(folder)
        config = json.loads((folder / "config.json").read_text())
        self.temperature, self.special = config["temperature"], config["special_ids"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        # The model runs one batch at a time: several runs would only share the same cores.
        self.lock = threading.Lock()

    def decide(self, body):
        return self.decide_all([body])[0]

    def decide_all(self, bodies):
        """Returns the answers to requests, whose rows share runs."""
        requests = [(list(body["questions"].items()), self.rows(body)) for body in bodies]
        logits = iter(self.run([row for _, rows in requests for row in rows]))
        return [self.write(questions, rows, logits) for questions, rows in requests]

    def write(self, questions, rows, logits):
        answers = {}
        for name, question in questions:
            kind, labels = question["type"], [label for label, _ in outcomes_of(question)]
            answers[name] = answer(kind, labels, next(logits) / self.temperature[kind])
        tokens = sum(len(ids) for ids, _, _ in rows)
        return {"model": "svc", "answers": answers, "usage": {"input_tokens": tokens, "output_tokens": 0}}

    def rows(self, body):
        """Returns (ids, markers, type) per question: CLS head SEP (MASK option)... SEP state SEP; tokenizes the state
        once."""
        questions = body["questions"].values()
        outcomes = [outcomes_of(question) for question in questions]
        texts = [state_text(body["state"])]
        for question, labels in zip(questions, outcomes):
            texts.append(f"{question['type']} question: {question.get('instructions') or ''}")
            texts.extend(f" {text}" for _, text in labels)
        encoded = iter([encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)])
        state_ids, rows = next(encoded), []
        for question, labels in zip(questions, outcomes):
            ids, markers = [self.special["cls"], *next(encoded), self.special["sep"]], []
            for _ in labels:
                markers.append(len(ids))
                ids += [self.special["mask"], *next(encoded)]
            ids += [self.special["sep"], *state_ids, self.special["sep"]]
            rows.append((ids, markers, TYPES[question["type"]]))
        return rows

    def run(self, rows):
        """Returns the logits of each row, with as many rows in a run as fit into a batch."""
        length = max(len(ids) for ids, _, _ in rows)
        size = max(1, BATCH_TOKENS // length)
        logits = []
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            with self.lock:
                values, = self.session.run(["logits"], tensors(batch))
            logits += [row[: len(markers)] for row, (_, markers, _) in zip(values, batch)]
        return logits


def tensors(rows):
    length, markers = (max(len(row[part]) for row in rows) for part in (0, 1))
    feeds = {
        "input_ids": np.zeros((len(rows), length), np.int64),
        "attention_mask": np.zeros((len(rows), length), np.int64),
        "marker_pos": np.zeros((len(rows), markers), np.int64),
        "marker_mask": np.zeros((len(rows), markers), bool),
        "qtype": np.array([kind for _, _, kind in rows], np.int64),
    }
    for index, (ids, places, _) in enumerate(rows):
        feeds["input_ids"][index, : len(ids)] = ids
        feeds["attention_mask"][index, : len(ids)] = 1
        feeds["marker_pos"][index, : len(places)] = places
        feeds["marker_mask"][index, : len(places)] = True
    return feeds


def state_text(state):
    return state if isinstance(state, str) else json.dumps(state)


def outcomes_of(question):
    """Returns (label, text) of each possible answer to a question."""
    kind, criteria = question["type"], question.get("criteria")
    if kind == "noul":
        return [(label, f"{label}: {(criteria or {}).get(label) or text}") for label, text in NOUL_TEXTS.items()]
    if kind == "score":
        return [(str(level), f"level {level}: {text}") for level, text in enumerate(criteria)]
    criteria = criteria if isinstance(criteria, dict) else dict.fromkeys(criteria)
    return [(label, f"{label}: {text}" if text else label) for label, text in criteria.items()]


def answer(kind, labels, logits):
    powers = np.exp(logits.astype(np.float64) - logits.max())
    probabilities = powers / powers.sum()
    best = int(probabilities.argmax())
    given = {"choice": labels[best], "score": float(probabilities @ np.arange(len(labels))), "noul": float(probabilities[-1])}
    return {"type": kind, kind: given[kind], "probabilities": {label: round(float(p), 6) for label, p in zip(labels, probabilities)},
            "answer_confidence": float(probabilities[best])}
