"""`python -m training COMMAND`: data, train, prepare, teach, distil, look, average, calibrate, export, settle,
evaluate, card, finetune."""

import argparse
import importlib
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
    args.run(args)


if __name__ == "__main__":
    main()
