"""Runs deploy/ray on a cluster of two nodes on this machine, and kills a server, a worker and a node meanwhile.

ray_cluster.py FOLDER COMMAND FILES ROWS: FOLDER gets the input, which has FILES files of ROWS rows each, and the output;
the last line names the killed processes, as JSON.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from ray.cluster_utils import Cluster

DECIDE = Path(__file__).parents[3] / "deploy" / "ray" / "decide.py"

LONGEST_WAIT_S = 600


def make_input(folder: Path, files: int, rows: int) -> None:
    folder.mkdir()
    for file in range(files):
        ids = [file * rows + row for row in range(rows)]
        texts = [f"Ticket {n}: I was charged {n % 7} times, and nobody answers" for n in ids]
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "text": texts}), folder / f"{file:03}.parquet")


def processes() -> dict[int, tuple[int, str]]:
    """Returns the parent and the command line of each process."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(entry.name)] = (parent, (entry / "cmdline").read_text().replace("\0", " "))
        except (ValueError, OSError):
            continue
    return found


def descendants(words: str) -> list[int]:
    """Returns the descendants of this process whose command line has these words."""
    all_of_them = processes()

    def is_below(pid: int) -> bool:
        while pid in all_of_them and pid != os.getpid():
            pid = all_of_them[pid][0]
        return pid == os.getpid()

    return [pid for pid, (_, command) in all_of_them.items() if words in command and is_below(pid)]


def until(condition, what: str) -> None:
    """Waits for a condition; on a busy machine, the workers alone take minutes to start."""
    end = time.monotonic() + LONGEST_WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: it does not come to pass"
        time.sleep(0.05)


def disturb(cluster: Cluster, node, output: Path, killed: list[str]) -> None:
    def written() -> int:
        return len(list(output.glob("*.parquet"))) if output.exists() else 0

    kills = {"serve --listen": "server", "ray::Server": "actor", "ray::Map": "task", "ray::Machines": "registry"}
    for files, (words, name) in enumerate(kills.items()):
        wanted = 2 + 3 * files
        until(lambda: written() >= wanted and descendants(words), f"{wanted} files and a {name}")
        os.kill(descendants(words)[0], signal.SIGKILL)
        killed.append(name)
    until(lambda: written() >= 14, "14 files")
    cluster.remove_node(node, allow_graceful=False)
    killed.append("node")


def main() -> None:
    folder, command, files, rows_of_file = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    make_input(folder / "in", files, rows_of_file)
    Path(folder, "questions.json").write_text(
        json.dumps(
            {
                "refund": {"type": "noul", "instructions": "Does the customer want money back?"},
                "team": {"type": "choice", "instructions": "Which team?", "criteria": ["billing", "tech"]},
                "anger": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "cross", "furious"]},
            }
        )
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    node = cluster.add_node(num_cpus=2)
    args = ["in", "out", "--questions", "questions.json", "--state", "text", "--batch-rows", "16"]
    args += ["--task-rows", str(rows_of_file), "--svc", command]
    env = {**os.environ, "RAY_ADDRESS": cluster.address}
    pipeline = subprocess.Popen(
        [sys.executable, str(DECIDE), *args], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    killed: list[str] = []
    threading.Thread(target=disturb, args=(cluster, node, folder / "out", killed), daemon=True).start()
    stdout, stderr = pipeline.communicate()
    cluster.shutdown()
    if pipeline.returncode != 0:
        sys.exit(stderr)
    rows = pq.read_table(folder / "out").to_pylist()
    print(json.dumps({"said": stdout.splitlines()[-1], "killed": killed, "left": descendants("serve --listen"), "rows": rows}))


main()
