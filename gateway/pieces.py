"""Long files of lines are read a piece at a time, so that others can have their turn."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

_Result = TypeVar("_Result")

Pieces: TypeAlias = Generator[None, None, _Result]
"""Work that comes to an end with a result; at each item others can have their turn."""

LINES = 200
"""Lines of a file in one piece: some 1 ms."""

BLANKS = " \t\n\v\f\r"
"""What may stand around the parts of a line, as C's `isspace` and Mosquitto have it: other blanks
that Unicode knows belong to a name."""


EMPTY_ON_PURPOSE = "empty on purpose"
"""The comment by which a file of lines says that nothing else in it is no accident."""


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
