"""The values that options of commands may have; `argparse` refuses others in one line."""

import argparse
import math
import re
from collections.abc import Callable

VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")


def said(least: float, most: float | None) -> str:
    """Returns a range in words."""
    return f"from {least} up" if most is None else f"from {least} to {most}"


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Returns the type of options that are whole numbers in a range."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number {said(least, most)}")
        return value

    return read


def number(least: float, most: float | None = None) -> Callable[[str], float]:
    """Returns the type of options that are finite numbers in a range."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is no number {said(least, most)}")
        return value

    return read


def version(text: str) -> str:
    """Returns a version such as 0.13.0; refuses other texts."""
    if not VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no version such as 0.13.0")
    return text
