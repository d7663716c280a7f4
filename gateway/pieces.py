"""Long work in pieces, between which others get their turn; pieces of long files of lines."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

_Result = TypeVar("_Result")

Pieces: TypeAlias = Generator[None, None, _Result]
"""Work that ends with a result; at each item others can have their turn."""

LINES = 200
"""Lines of a file in one piece: some 1 ms."""

BLANKS = " \t\n\v\f\r"
"""Blanks around the parts of a line, as in C's `isspace` and Mosquitto: other blanks of Unicode
belong to a name."""


EMPTY_ON_PURPOSE = "empty on purpose"
"""The comment that declares a file of lines intentionally empty."""


def is_on_purpose(line: str) -> bool:
    """Return whether a line is that comment."""
    text = line.strip(BLANKS)
    return text.startswith("#") and text.strip("#" + BLANKS).lower() == EMPTY_ON_PURPOSE


def complete(pieces: Pieces[_Result]) -> _Result:
    """Do the work at once and return its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: _Result = end.value
            return result
