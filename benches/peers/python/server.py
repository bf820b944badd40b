"""A straightforward server of decisions: FastAPI, uvicorn, onnxruntime, tokenizers; one worker.

    python server.py FOLDER THREADS PORT
"""
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from decisions import Decisions


class Request(BaseModel):
    state: object
    questions: dict[str, dict]


def app(decisions):
    api = FastAPI()

    # The function is not `async`, so FastAPI runs it on a thread, and the loop keeps reading while the model runs.
    @api.post("/v1/systemone")
    def decide(request: Request) -> dict:
        return decisions.decide({"state": request.state, "questions": request.questions})

    @api.get("/readyz")
    def ready() -> dict:
        return {"status": "ok"}

    return api


if __name__ == "__main__":
    folder, threads, port = sys.argv[1:]
    uvicorn.run(app(Decisions(folder, int(threads))), host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
