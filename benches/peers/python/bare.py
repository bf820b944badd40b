"""Runs the bare graph: onnxruntime in one process, on rows that are ready; the memory of a run is not copied.

    python bare.py MODEL_FOLDER

Reads orders from stdin and answers on stdout, a line of JSON each:

    {"load": {"name": …, "rows": …}}                                  -> {"logits": [[…], …]}
    {"time": name, "kept": bool, "setting": {…}, "way": "plain", "times": n} -> {"ms": […]}

`plain` runs the state's chunks and then the questions one after another; `side` runs them in parallel, on as many
sessions of one thread each as `setting` has threads. Sessions are opened once for each setting.
"""
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported

import numpy as np
import onnxruntime

LEVELS = {name: getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{name}") for name in ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL")}


def value(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def open_session(path, setting):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = setting["threads"]
    options.graph_optimization_level = LEVELS[setting.get("level", "ENABLE_ALL")]
    options.enable_mem_pattern = setting.get("memory_pattern", False)
    options.enable_cpu_mem_arena = setting.get("arena", True)
    for key, entry in setting.get("entries", {}).items():
        options.add_session_config_entry(key, entry)
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Bare:
    def __init__(self, folder):
        config = json.loads((folder / "config.json").read_text())
        self.path = str(folder / "model.onnx")
        parts = [f"{part}{layer}" for layer in range(config["layers"]) for part in "kv"]
        self.past, self.present = [f"past_{part}" for part in parts], [f"present_{part}" for part in parts]
        self.empty = {name: value(np.zeros((1, config["heads"], 0, config["head_dim"]), np.float32)) for name in self.past}
        self.inputs, self.sessions, self.pools = {}, {}, {}

    def load(self, name, rows):
        """Makes an input's tensors, and the memory of its state, for questions on a kept state."""
        state = [self.feeds(row) for row in rows["state"]]
        questions = [{**question, "rows": [(row["outcomes"], self.feeds(row)) for row in question["rows"]]} for question in rows["questions"]]
        session = self.session({"threads": 1})
        memory = self.joined([self.read(session, chunk) for chunk in state])
        self.inputs[name] = (state, [feeds for question in questions for _, feeds in question["rows"]], memory)
        return [self.logits(session, question, memory) for question in questions]

    def logits(self, session, question, memory):
        own = [None] * len(question["outcomes"])
        for outcomes, feeds in question["rows"]:
            for outcome, logit in zip(outcomes, self.answer(session, feeds, memory)):
                own[outcome] = float(logit)
        return own

    def feeds(self, row):
        columns = {"input_ids": row["ids"], "positions": row["positions"], "types": [row["type_id"]] * len(row["ids"]),
                   "option_ids": row["option_ids"], "markers": row["markers"], "option_count": [row["option_count"]]}
        return {name: value(np.array(column, np.int64)) for name, column in columns.items()}

    def read(self, session, feeds):
        return session.run_with_ort_values(self.present, {**feeds, **self.empty})

    def joined(self, chunks):
        """Returns the memory of the chunks as the past of a question; that of a single chunk is not copied."""
        if len(chunks) > 1:
            chunks = [[value(np.concatenate([part.numpy() for part in parts], axis=2)) for parts in zip(*chunks)]]
        return dict(zip(self.past, chunks[0])) if chunks else self.empty

    def answer(self, session, feeds, memory):
        return session.run_with_ort_values(["logits"], {**feeds, **memory})[0].numpy()

    def session(self, setting, index=0):
        key = (json.dumps(setting, sort_keys=True), index)
        if key not in self.sessions:
            self.sessions[key] = open_session(self.path, setting)
        return self.sessions[key]

    def time(self, name, kept, setting, way, times):
        state, questions, memory = self.inputs[name]
        every = self.plain(setting) if way == "plain" else self.side(setting)
        return [self.once(every, [] if kept else state, questions, memory) for _ in range(times)]

    def once(self, every, state, questions, memory):
        start = time.perf_counter()
        if state:
            memory = self.joined(every(self.read, [(chunk,) for chunk in state]))
        every(self.answer, [(question, memory) for question in questions])
        return (time.perf_counter() - start) * 1000

    def plain(self, setting):
        session = self.session(setting)
        return lambda work, rows: [work(session, *row) for row in rows]

    def side(self, setting):
        """Returns a function that runs rows in parallel; a lone row runs on all threads, since one thread would be
        slower."""
        alone, threads = self.plain(setting), setting["threads"]
        free = SimpleQueue()
        for index in range(threads):
            free.put(self.session({**setting, "threads": 1}, index))
        pool = self.pools.setdefault(threads, ThreadPoolExecutor(threads))

        def on_free(work, row):
            session = free.get()
            try:
                return work(session, *row)
            finally:
                free.put(session)

        return lambda work, rows: alone(work, rows) if len(rows) == 1 else list(pool.map(lambda row: on_free(work, row), rows))


def main():
    bare = Bare(Path(sys.argv[1]))
    for line in sys.stdin:
        order = json.loads(line)
        if "load" in order:
            reply = {"logits": bare.load(**order["load"])}
        else:
            reply = {"ms": bare.time(order["time"], order["kept"], order["setting"], order["way"], order["times"])}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
