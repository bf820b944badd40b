"""Asks the same questions about every row of Parquet files, on all machines of a Ray cluster.

    python decide.py INPUT OUTPUT --questions questions.json --state subject --state body

docs/scaling.md says what it needs and what it writes. On each machine one actor runs one `svc serve` on loopback; what
is read there is asked there. A decision changes nothing and is always the same, so whatever is lost with a machine, a
process or a server is simply done again: the file that a task writes has the same name each time.
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
ANSWER_TIMEOUT_S = 600
# A server that cannot be started again, or is busy for so long, ends the run.
ATTEMPTS = 30
LONGEST_PAUSE_S = 30

# What the outcome of a question's type is called in an answer, and its type.
OUTCOMES = {"noul": pa.float64(), "choice": pa.string(), "score": pa.float64()}


class BadInput(Exception):
    """Something that the person who started it has to change; its text is one line."""


# The server


def die_with_parent() -> None:
    """A process that is killed cannot stop what it has started: Linux does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Server:
    """One `svc serve` on this machine. It takes the processors that it finds, beside what Ray counts."""

    def __init__(self, command: Sequence[str]):
        self._command = [*command, "serve", "--listen", "127.0.0.1:0"]
        self._process: subprocess.Popen | None = None
        self._url = ""

    def url(self) -> str:
        """Where it listens; it is started when it does not run."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._url

    def _start(self) -> None:
        # A folder of its own: two servers on one machine do not share what they write. On loopback nobody needs a key.
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
        self._url = self._wait(log)

    def _wait(self, log: Path) -> str:
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end and self._process.poll() is None:
            address = re.search(r'listening on (http://[^"\s]+)', log.read_text())
            if address and is_ready(address[1]):
                return address[1]
            time.sleep(0.1)
        self._process.kill()
        raise BadInput(f"the server does not start: {(log.read_text().strip().splitlines() or ['no word'])[-1]}")


def is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=5).ok
    except requests.RequestException:
        return False


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Machines:
    """The servers, one a machine; they live as long as this."""

    def __init__(self, command: Sequence[str]):
        self._command = command
        self._servers: dict[str, ray.actor.ActorHandle] = {}

    def server(self, node: str) -> list[ray.actor.ActorHandle]:
        """That of a machine, in a list: a handle by itself would be waited for."""
        if node not in self._servers:
            here = NodeAffinitySchedulingStrategy(node, soft=False)
            self._servers[node] = Server.options(scheduling_strategy=here).remote(self._command)
        return [self._servers[node]]


# The rows


@dataclass(frozen=True)
class Plan:
    """What is asked about which part of a row."""

    questions: dict
    # None: the whole row. One: its value. Several: an object of them.
    state: tuple[str, ...]
    # What the answers become, in this order.
    columns: pa.Schema


def plain(value: object) -> object:
    """A value of Parquet as JSON has it."""
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
    """What the questions are about, of each row."""
    if len(columns) == 1:
        return [plain(value) for value in rows.column(columns[0]).to_pylist()]
    return [plain(row) for row in (rows.select(list(columns)) if columns else rows).to_pylist()]


def server_url(machines: ray.actor.ActorHandle) -> str:
    """Where the server of the machine that this runs on listens."""
    [server] = ray.get(machines.server.remote(ray.get_runtime_context().get_node_id()))
    return ray.get(server.url.remote())


def ask(machines: ray.actor.ActorHandle, asked: Sequence[object], questions: dict) -> list[dict]:
    """The results for these states, in their order, of the server on this machine. What does not come is asked again."""
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
    """The columns that an answer to these questions fills."""
    fields = []
    for name, answer in answers.items():
        fields.append(pa.field(name, OUTCOMES[answer["type"]]))
        numbers = ["confidence", "answer_confidence", *(f"p.{label}" for label in answer["probabilities"])]
        numbers += ["act_probability"] if "action" in answer else []
        fields += [pa.field(f"{name}.{number}", pa.float64()) for number in numbers]
    return pa.schema([*fields, pa.field("svc.input_tokens", pa.int64()), pa.field("svc.error", pa.string())])


def cells(result: dict) -> dict[str, object]:
    """One result as the columns' values."""
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
    """The rows, with the columns of their answers behind their own."""
    results = ask(machines, states(rows, plan.state), plan.questions) if rows.num_rows else []
    if len(results) != rows.num_rows:
        raise RuntimeError(f"{len(results)} results for {rows.num_rows} rows")
    answers = pa.Table.from_pylist([cells(result) for result in results], schema=plan.columns)
    for name in plan.columns.names:
        rows = rows.append_column(plan.columns.field(name), answers.column(name))
    return rows


@ray.remote
def first_answers(questions: dict, machines: ray.actor.ActorHandle) -> dict:
    """The answers about no text at all: they tell what the questions are, and whether they can be asked."""
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
    """Asks and writes; how many rows that were."""
    questions = read_questions(options.questions)
    require_paths(options)
    ray.init(logging_level="warning")
    try:
        return decide_all(options, questions)
    finally:
        # The last line is ours, whatever the cluster still has to say about a machine that went away.
        ray.shutdown()


def decide_all(options: argparse.Namespace, questions: dict) -> int:
    """The same, on the cluster that this is joined to."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    machines = Machines.options(scheduling_strategy=here).remote(shlex.split(options.svc))
    columns = answer_columns(ray.get(first_answers.remote(questions, machines)))
    plan = Plan(questions, tuple(options.state), columns)

    source = read_rows(options.input)
    require_columns(source.schema().names, plan)
    rows = source.count()
    if rows == 0:
        raise BadInput(f"{options.input}: has no rows")
    # Two tasks a machine keep its server busy: while one is answered, the next one reads and writes.
    tasks = 2 * sum(node["Alive"] for node in ray.nodes())
    # By itself Ray makes few large tasks of small files, and some machines would have nothing to do.
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
    # Who finds it knows that nothing is missing.
    filesystem, folder = pa.fs.FileSystem.from_uri(absolute(options.output))
    filesystem.open_output_stream(f"{folder}/_SUCCESS").close()
    return rows


def read_rows(path: str) -> ray.data.Dataset:
    return ray.data.read_parquet(absolute(path), file_extensions=["parquet"])


def absolute(path: str) -> str:
    """Of a local path: a task runs in another folder."""
    return path if "://" in path else str(Path(path).resolve())


def cause(error: BaseException) -> BaseException:
    """What a task of Ray failed of."""
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
