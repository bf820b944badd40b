"""Writes a model folder: graph, tokenizer, config and reference answers."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from ..data import layout
from ..model.encoder import HEAD_DIM, HEADS, LAYERS
from .golden import requests
from .reader import Folder, digest


@dataclass(frozen=True)
class About:
    """A folder's name, its version and the temperature of each type; `more` holds further entries of config.json about
    the answers."""

    name: str
    version: str
    temperature: dict[str, float]
    more: dict[str, object] = field(default_factory=dict)


def make_config(folder: Path, about: About) -> dict[str, object]:
    """Returns the content of `config.json` that describes the folder's files."""
    return {
        "name": about.name,
        "version": about.version,
        "layout": "shared-state",
        "temperature": about.temperature,
        "chunk": layout.CHUNK,
        "head_max": layout.HEAD_MAX,
        "option_max": layout.OPTION_MAX,
        "state_max": layout.STATE_MAX,
        "run_tokens": layout.RUN_TOKENS,
        "head_prefix": layout.HEAD_PREFIX,
        "type_ids": layout.TYPE_IDS,
        "special_ids": {"cls": layout.CLS, "sep": layout.SEP, "pad": layout.PAD, "mask": layout.MASK},
        "layers": LAYERS,
        "heads": HEADS,
        "head_dim": HEAD_DIM,
        "unify": True,
        "sha256": digest(folder / "model.onnx"),
        "files": {"tokenizer.json": digest(folder / "tokenizer.json")},
    }


def write_folder(folder: Path, graph: onnx.ModelProto, about: About) -> None:
    """Writes graph, tokenizer, config and reference answers."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, str(folder / "model.onnx"))
    tokenizer = json.loads((layout.base_folder() / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer |= {"truncation": None, "padding": None}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    config = make_config(folder, about) | about.more
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    write_golden(folder)


def write_golden(folder: Path) -> None:
    """Writes the reference answers of a folder whose other files already exist."""
    served = Folder(folder)
    lines = [json.dumps(served.golden(*request), ensure_ascii=False, separators=(",", ":")) for request in requests()]
    (folder / "golden.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
