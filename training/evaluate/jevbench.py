"""Runs JevBench's coherence tests against a folder that the server serves."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict, cast

SUITE = "jevbench-mini"
SECONDS_TO_START = 120


class Scores(TypedDict):
    """The scores of JevBench's report that are read, 0 to 1; None if too many answers are missing."""

    overall: float | None
    pillars: dict[str, float | None]
    relations: dict[str, float | None]


class Report(TypedDict):
    """The part of JevBench's report that is read."""

    scores: Scores


def check_jevbench(svc: Path) -> None:
    """Raises ValueError or OSError if JevBench cannot run: it is not installed, or there is no server."""
    if find_spec("jevbench") is None:
        raise ValueError("JevBench is not installed: pip install jevbench==0.1.0")
    with svc.open("rb"):
        pass


def free_port() -> int:
    """Returns a port on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def await_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    """Waits until the server answers."""
    until = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > until:
                raise ConnectionError(f"{url}: the server does not answer") from None
            time.sleep(0.5)


def jevbench(folder: Path, svc: Path, suite: str = SUITE) -> Scores:
    """Returns JevBench's scores, of the whole and of each part; `svc` is the server's bin/svc.js."""
    url = f"http://127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as work:
        server = start(folder, svc, url, work)
        try:
            await_ready(url, server)
            out = Path(work) / "report.json"
            asked = ["--url", f"{url}/v1/systemone", "--model", "svc-small", "--suite", suite, "--out", str(out)]
            status = subprocess.run([sys.executable, "-m", "jevbench", "eval", *asked], cwd=work).returncode
            if status:
                raise ValueError(f"jevbench eval ended with exit code {status}")
            return cast(Report, json.loads(out.read_text(encoding="utf-8")))["scores"]
        finally:
            server.terminate()
            server.wait()


def start(folder: Path, svc: Path, url: str, work: str) -> subprocess.Popen[bytes]:
    """Starts the server with a model folder."""
    # The caller's settings are left out, so that a key or a model of theirs has no influence on the measurement.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    options = ["--listen", url.removeprefix("http://"), "--model", str(folder.resolve()), "--log-level", "error"]
    silent = subprocess.DEVNULL
    return subprocess.Popen(
        ["node", str(svc.resolve()), "serve", *options], cwd=work, env=environment, stdout=silent, stderr=silent
    )
