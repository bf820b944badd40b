"""Calls the hub's own client library: reads a list of calls as JSON, prints a list of their results.

A call is a name below and its arguments. A call that raises gives the name of the exception's class.
"""

import json
import os
import sys

from huggingface_hub import (
    HfApi,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    scan_cache_dir,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.utils import disable_progress_bars

disable_progress_bars()
api = HfApi()


def info(**arguments):
    return api.model_info(**arguments).sha


def tree(**arguments):
    entries = api.list_repo_tree(recursive=True, **arguments)
    return [[entry.path, entry.size, entry.lfs and entry.lfs.sha256] for entry in entries if hasattr(entry, "size")]


def metadata(**arguments):
    found = get_hf_file_metadata(hf_hub_url(**arguments))
    return [found.commit_hash, found.etag, found.size, found.location]


def text(**arguments):
    with open(hf_hub_download(**arguments), encoding="utf-8") as file:
        return file.read()


def real_path(**arguments):
    return os.path.realpath(hf_hub_download(**arguments))


def cached(**arguments):
    return try_to_load_from_cache(**arguments)


def scan():
    found = scan_cache_dir()
    revisions = [
        [repo.repo_id, revision.commit_hash, sorted(revision.refs), sorted(file.file_name for file in revision.files)]
        for repo in found.repos
        for revision in repo.revisions
    ]
    return [sorted(revisions), [str(warning) for warning in found.warnings]]


CALLS = {
    call.__name__: call for call in (info, tree, metadata, text, real_path, cached, scan, snapshot_download)
}


def result(name, arguments):
    try:
        return CALLS[name](**arguments)
    except Exception as error:
        return {"error": type(error).__name__, "said": str(error)}


print(json.dumps([result(name, arguments) for name, arguments in json.load(sys.stdin)]))
