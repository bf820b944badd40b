"""Asks the same questions about every row of Parquet files, on all machines of a Ray cluster.

    python decide.py INPUT OUTPUT --questions questions.json --state subject --state body

docs/scaling.md says what it needs and what it writes. On each machine, one actor runs one `svc serve` on loopback; rows
are asked about on the machine that reads them. A decision changes nothing and is always the same, so work that is lost
with a machine, a process or a server is simply done again: the file that a task writes has the same name each time.
"""

from __future__ import annotations

import argparse
import atexit
import base64
import ctypes
import datetime
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import ray
import requests
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

START_TIMEOUT_S = 300
# How often a server is started that is killed before it is ready, as a machine without memory does.
STARTS = 3
ANSWER_TIMEOUT_S = 600
# A server that cannot be started again, or stays busy for this many attempts, ends the run.
ATTEMPTS = 30
LONGEST_PAUSE_S = 30

# The name of the outcome in an answer for each type of question, and the type of its column.
OUTCOMES = {"noul": pa.float64(), "choice": pa.string(), "score": pa.float64()}


class BadInput(Exception):
    """An error that the person who started the run has to correct; its text is one line."""


# The server


def die_with_parent() -> None:
    """Makes Linux end this process with its parent, because a killed parent cannot stop the processes that it
    started."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Server:
    """One `svc serve` on this machine. It uses all processors that it finds, outside of Ray's count."""

    def __init__(self, command: Sequence[str]):
        self._command = [*command, "serve", "--listen", "127.0.0.1:0"]
        self._process: subprocess.Popen | None = None
        self._url = ""

    def url(self) -> str:
        """Returns the URL of the server, which is started if it does not run."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._url

    def _start(self) -> None:
        for _ in range(STARTS):
            url = self._try_start()
            if url is not None:
                self._url = url
                return
        raise BadInput(f"the server was killed {STARTS} times while it started: has the machine enough memory?")

    def _try_start(self) -> str | None:
        """Starts the server and returns its URL, or None if a signal has ended it before it was ready."""
        # The server has a folder of its own, so that two servers on one machine do not share files. It needs no key,
        # because it listens only on loopback.
        folder = tempfile.TemporaryDirectory(prefix="svc-ray-", ignore_cleanup_errors=True)
        log = Path(folder.name, "log")
        env = {**os.environ, "SVC_ALLOW_NO_API_KEY": "1", "SVC_LOG_LEVEL": "info", "SVC_LOG_FORMAT": "json"}
        try:
            with log.open("wb") as stderr:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=folder.name,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    preexec_fn=die_with_parent,
                )
        except OSError as error:
            raise BadInput(f"{self._command[0]}: {error.strerror}: is the server installed on each machine?") from None
        atexit.register(self._process.terminate)
        self._folder = folder
        return self._wait(log)

    def _wait(self, log: Path) -> str | None:
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end and self._process.poll() is None:
            address = re.search(r'listening on (http://[^"\s]+)', log.read_text())
            if address and is_ready(address[1]):
                return address[1]
            time.sleep(0.1)
        if (self._process.poll() or 0) < 0:
            return None
        self._process.kill()
        raise BadInput(f"the server does not start: {(log.read_text().strip().splitlines() or ['no word'])[-1]}")


def is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=5).ok
    except requests.RequestException:
        return False


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Machines:
    """The servers, one per machine; they live as long as this actor."""

    def __init__(self, command: Sequence[str]):
        self._command = command
        self._servers: dict[str, ray.actor.ActorHandle] = {}

    def server(self, node: str) -> list[ray.actor.ActorHandle]:
        """Returns the server of a machine, in a list, because Ray would wait for a bare handle."""
        if node not in self._servers:
            here = NodeAffinitySchedulingStrategy(node, soft=False)
            self._servers[node] = Server.options(scheduling_strategy=here).remote(self._command)
        return [self._servers[node]]


# The rows


@dataclass(frozen=True)
class Plan:
    """The questions about each row, and the part of the row that they are about."""

    questions: dict
    # The columns of the state. None means the whole row; one, its value; several, an object of them.
    state: tuple[str, ...]
    # The columns of the answers, in their order.
    columns: pa.Schema


def plain(value: object) -> object:
    """Returns a value of Parquet in the form of JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return str(value)


def states(rows: pa.Table, columns: Sequence[str]) -> list[object]:
    """Returns the state of each row, which the questions are about."""
    if len(columns) == 1:
        return [plain(value) for value in rows.column(columns[0]).to_pylist()]
    return [plain(row) for row in (rows.select(list(columns)) if columns else rows).to_pylist()]


def server_url(machines: ray.actor.ActorHandle) -> str:
    """Returns the URL of the server on this task's machine."""
    [server] = ray.get(machines.server.remote(ray.get_runtime_context().get_node_id()))
    return ray.get(server.url.remote())


def ask(machines: ray.actor.ActorHandle, asked: Sequence[object], questions: dict) -> list[dict]:
    """Returns the results of this machine's server for these states, in their order; a request that fails is
    repeated."""
    body = json.dumps({"states": asked, "questions": questions}, ensure_ascii=False).encode("utf-8", "replace")
    problem = ""
    for attempt in range(ATTEMPTS):
        pause = min(LONGEST_PAUSE_S, 0.25 * 2**attempt)
        try:
            response = requests.post(f"{server_url(machines)}/v1/systemone/batch", data=body, timeout=ANSWER_TIMEOUT_S)
            if response.status_code == 200:
                return response.json()["results"]
            problem = response.text.strip()
            if response.status_code == 413 and len(asked) > 1:
                half = len(asked) // 2
                return [*ask(machines, asked[:half], questions), *ask(machines, asked[half:], questions)]
            if response.status_code == 413:
                return [{"error": {"message": problem}}]
            if response.status_code < 500:
                raise BadInput(problem)
            pause = float(response.headers.get("retry-after", pause))
        except (requests.RequestException, ray.exceptions.RayActorError) as error:
            problem = str(error)
        time.sleep(pause)
    raise RuntimeError(f"no answer after {ATTEMPTS} attempts: {problem}")


def answer_columns(answers: dict) -> pa.Schema:
    """Returns the columns that an answer to these questions fills."""
    fields = []
    for name, answer in answers.items():
        fields.append(pa.field(name, OUTCOMES[answer["type"]]))
        numbers = ["confidence", "answer_confidence", *(f"p.{label}" for label in answer["probabilities"])]
        numbers += ["act_probability"] if "action" in answer else []
        fields += [pa.field(f"{name}.{number}", pa.float64()) for number in numbers]
    return pa.schema([*fields, pa.field("svc.input_tokens", pa.int64()), pa.field("svc.error", pa.string())])


def cells(result: dict) -> dict[str, object]:
    """Returns the values of the columns for one result."""
    if "error" in result:
        error = result["error"]
        return {"svc.error": error["message"] if isinstance(error, dict) else str(error)}
    row: dict[str, object] = {"svc.input_tokens": result["usage"]["input_tokens"]}
    for name, answer in result["answers"].items():
        row[name] = answer[answer["type"]]
        row |= {f"{name}.{key}": answer[key] for key in ("confidence", "answer_confidence")}
        row |= {f"{name}.p.{label}": share for label, share in answer["probabilities"].items()}
        row |= {f"{name}.act_probability": answer["action"]["act_probability"]} if "action" in answer else {}
    return row


def decide(rows: pa.Table, plan: Plan, machines: ray.actor.ActorHandle) -> pa.Table:
    """Returns the rows with the columns of their answers behind their own columns."""
    results = ask(machines, states(rows, plan.state), plan.questions) if rows.num_rows else []
    if len(results) != rows.num_rows:
        raise RuntimeError(f"{len(results)} results for {rows.num_rows} rows")
    answers = pa.Table.from_pylist([cells(result) for result in results], schema=plan.columns)
    for name in plan.columns.names:
        rows = rows.append_column(plan.columns.field(name), answers.column(name))
    return rows


@ray.remote
def first_answers(questions: dict, machines: ray.actor.ActorHandle) -> dict:
    """Returns the answers about an empty text, which show the columns, and whether the questions can be asked."""
    return ask(machines, [""], questions)[0]["answers"]


# The run


def read_questions(path: str) -> dict:
    try:
        questions = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path}: is not valid JSON") from None
    if not isinstance(questions, dict):
        raise BadInput(f"{path}: must be an object of questions, as in \"questions\" of a request")
    return questions


def require_columns(schema: Sequence[str], plan: Plan) -> None:
    missing = [name for name in plan.state if name not in schema]
    if missing:
        raise BadInput(f"--state {missing[0]}: is no column of the input; they are {', '.join(schema)}")
    twice = [name for name in plan.columns.names if name in schema]
    if twice:
        raise BadInput(f"{twice[0]}: the input has a column of this name already; rename the question")


def is_there(path: str) -> bool:
    filesystem, place = pa.fs.FileSystem.from_uri(absolute(path))
    return filesystem.get_file_info(place).type != pa.fs.FileType.NotFound


def require_paths(options: argparse.Namespace) -> None:
    if not is_there(options.input):
        raise BadInput(f"{options.input}: is not there")
    if is_there(options.output):
        raise BadInput(f"{options.output}: is there already; remove it, or name another")


def run(options: argparse.Namespace) -> int:
    """Asks and writes, and returns the number of rows."""
    questions = read_questions(options.questions)
    require_paths(options)
    ray.init(logging_level="warning")
    try:
        return decide_all(options, questions)
    finally:
        # After this, the last line is ours, whatever messages the cluster still has about a machine that went away.
        ray.shutdown()


def decide_all(options: argparse.Namespace, questions: dict) -> int:
    """Asks and writes on the cluster that this process has joined, and returns the number of rows."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    machines = Machines.options(scheduling_strategy=here).remote(shlex.split(options.svc))
    columns = answer_columns(ray.get(first_answers.remote(questions, machines)))
    plan = Plan(questions, tuple(options.state), columns)

    source = read_rows(options.input)
    require_columns(source.schema().names, plan)
    rows = source.count()
    if rows == 0:
        raise BadInput(f"{options.input}: has no rows")
    # Two tasks per machine keep its server busy: while one waits for its answers, the other reads and writes.
    tasks = 2 * sum(node["Alive"] for node in ray.nodes())
    # By default, Ray makes a few large tasks from small files, and some machines would have nothing to do.
    source.repartition(target_num_rows_per_block=options.task_rows).map_batches(
        decide,
        fn_args=(plan, machines),
        batch_size=options.batch_rows,
        batch_format="pyarrow",
        concurrency=tasks,
        udf_modifying_row_count=False,
        scheduling_strategy="SPREAD",
    ).write_parquet(absolute(options.output))

    written = read_rows(options.output).count()
    if rows != written:
        raise RuntimeError(f"{written} rows were written of {rows}")
    # This file tells a reader that no part of the output is missing.
    filesystem, folder = pa.fs.FileSystem.from_uri(absolute(options.output))
    filesystem.open_output_stream(f"{folder}/_SUCCESS").close()
    return rows


def read_rows(path: str) -> ray.data.Dataset:
    return ray.data.read_parquet(absolute(path), file_extensions=["parquet"])


def absolute(path: str) -> str:
    """Makes a local path absolute, because a task runs in another folder."""
    return path if "://" in path else str(Path(path).resolve())


def cause(error: BaseException) -> BaseException:
    """Returns the error that made a task of Ray fail."""
    while isinstance(error, ray.exceptions.RayTaskError) and error.cause is not None:
        error = error.cause
    return error


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("input", help="a folder of Parquet files, or one; a path that every machine has, or s3://")
    arguments.add_argument("output", help="a folder that is made; the same")
    arguments.add_argument("--questions", required=True, help="a JSON file, as `questions` of a request")
    arguments.add_argument("--state", action="append", default=[], metavar="COLUMN", help="what the questions are about")
    arguments.add_argument("--batch-rows", type=int, default=256, help="rows in one request (256)")
    arguments.add_argument("--task-rows", type=int, default=4096, help="rows that are lost with a task and done again (4096)")
    arguments.add_argument("--svc", default="svc", help="the command that is the server, on each machine (svc)")
    return arguments


def main() -> None:
    options = parser().parse_args()
    try:
        rows = run(options)
    except Exception as error:
        if isinstance(cause(error), BadInput):
            sys.exit(f"decide: {cause(error)}")
        raise
    print(f"{options.output}: {rows} rows")


if __name__ == "__main__":
    main()
