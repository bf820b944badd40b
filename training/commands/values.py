"""The values that options of commands may have; `argparse` refuses others in one line."""

import argparse
import math
import re
from collections.abc import Callable
from typing import TypeVar

VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")


Number = TypeVar("Number", int, float)


def within(kind: str, read: Callable[[str], Number], least: float, most: float) -> Callable[[str], Number]:
    """Returns the type of options that are finite numbers of a kind in a range."""
    allowed = f"from {least} up" if most == math.inf else f"from {least} to {most}"

    def parse(text: str) -> Number:
        try:
            value = read(text)
        except ValueError:
            value = None
        if value is None or value == math.inf or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no {kind} {allowed}")
        return value

    return parse


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """Returns the type of options that are whole numbers in a range."""
    return within("whole number", int, least, most)


def number(least: float, most: float = math.inf) -> Callable[[str], float]:
    """Returns the type of options that are finite numbers in a range."""
    return within("number", float, least, most)


def version(text: str) -> str:
    """Returns a version such as 0.13.0; refuses other texts."""
    if not VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no version such as 0.13.0")
    return text
