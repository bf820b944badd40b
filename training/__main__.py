"""`python -m training COMMAND`: data, train, prepare, teach, distil, look, average, calibrate, export, settle,
evaluate, card, finetune.

A file that is missing or malformed, or a device that is not there, ends a command with one line on stderr; with the
environment variable SVC_TRAINING_TRACEBACK it ends with the traceback.
"""

import argparse
import importlib
import os
import sys

COMMANDS = (
    "data",
    "train",
    "prepare",
    "teach",
    "distil",
    "look",
    "average",
    "calibrate",
    "export",
    "settle",
    "evaluate",
    "card",
    "finetune",
)


def main(arguments: list[str] | None = None) -> None:
    """Runs one command."""
    parser = argparse.ArgumentParser(prog="python -m training", description="Makes the embedded decision model.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in COMMANDS:
        # Only the requested command is imported, because each needs other libraries.
        if name in (arguments or sys.argv[1:])[:1]:
            module = importlib.import_module(f".commands.{name}", __package__)
            own = commands.add_parser(name, help=module.__doc__, description=module.__doc__)
            module.add_arguments(own)
            own.set_defaults(run=module.run)
        else:
            commands.add_parser(name)
    args = parser.parse_args(arguments)
    if "device" in args:
        check_device(args.device)
    args.run(args)


def check_device(name: str) -> None:
    """Raises ValueError if there is no such device."""
    import torch

    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"--device {name}: no device has such a name") from error
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device.type == "cuda" and (device.index or 0) >= count:
        raise ValueError(f"--device {name}: there is no such CUDA device here")


def told(error: Exception) -> str:
    """Returns what an error says, in one line."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def program() -> None:
    """Runs the command of the process; an error of its files or options ends it with one line."""
    try:
        main()
    except (OSError, ValueError) as error:
        if os.environ.get("SVC_TRAINING_TRACEBACK"):
            raise
        raise SystemExit(f"python -m training {sys.argv[1]}: {told(error)}") from error


if __name__ == "__main__":
    program()
