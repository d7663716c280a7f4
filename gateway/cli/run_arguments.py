"""Parses the arguments of `tidegate run` without argparse if they are simple."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

DATA = Path("var")

INSTALLED = Path("/var/lib/tidegate")
"""The data folder of the installed service."""
DURABILITY = ("commit", "memory")
"""When messages are on disk, by default before they are acknowledged."""


def port_number(text: str) -> int:
    """Return the port; raise ValueError with the fault."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise ValueError(f"{text!r} is not a port: 1 to 65535")
    return int(text)


def _durability(text: str) -> str:
    if text not in DURABILITY:
        raise ValueError(text)
    return text


OPTIONS: dict[str, Callable[[str], object]] = {
    "--config": Path,
    "--port": port_number,
    "--data": Path,
    "--durability": _durability,
}
"""Options of `run`, and the function that converts each value."""


def simple_options(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of `run` if all are full options, each followed by its value.

    None if argparse must parse the words, or report a mistake.
    """
    given: dict[str, Any] = {}
    values = iter(words)
    for name in values:
        value, convert = next(values, "-"), OPTIONS.get(name)
        if convert is None or value.startswith("-"):
            return None
        try:
            given[name.removeprefix("--")] = convert(value)
        except ValueError:
            return None
    return given
