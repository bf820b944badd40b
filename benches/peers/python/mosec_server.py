"""Serves the same decisions with mosec, which batches the requests that arrive while the model runs.

    MOSEC_PORT=PORT python mosec_server.py FOLDER THREADS
"""
import os
import sys

# mosec reads the command line itself, so the arguments move into the environment.
FOLDER, THREADS = sys.argv[1:] if len(sys.argv) > 1 else (os.environ["PEER_FOLDER"], os.environ["PEER_THREADS"])
os.environ |= {"PEER_FOLDER": FOLDER, "PEER_THREADS": THREADS}
sys.argv[1:] = []

from mosec import Server, Worker

from decisions import Decisions

REQUESTS, WAIT_MS = 8, 1


class Model(Worker):
    def __init__(self):
        self.decisions = Decisions(FOLDER, int(THREADS))

    def forward(self, data):
        return self.decisions.decide_all(data)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Model, num=1, max_batch_size=REQUESTS, max_wait_time=WAIT_MS, route="/v1/systemone")
    server.run()
