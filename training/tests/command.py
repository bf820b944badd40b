"""Runs commands of the training."""

from training.__main__ import main


def command(name, *flags, **options):
    """Runs a command with options, whose names have "_" for "-"; a list is an option with several values."""
    given = []
    for option, value in options.items():
        values = value if isinstance(value, list) else [value]
        given += [f"--{option.replace('_', '-')}", *map(str, values)]
    main([name, *given, *flags])
