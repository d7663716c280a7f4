"""A landing file's lines as bytes, each with a bound on the memory it may take."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

LINE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of one line; it holds a payload of 48 MB. The rest of a longer line is skipped."""


class Line(NamedTuple):
    """One line, or as much of it as the bound allows."""

    number: int
    """From 1; every line counts, blank ones too."""
    content: bytes
    """Without the newline that ended it."""
    ended: bool
    """A newline followed; only a file's last line can lack it."""
    too_long: bool
    """`content` is only the first LINE_BYTES_MAX bytes."""


def read_lines(file: BinaryIO, limit: int = LINE_BYTES_MAX) -> Iterator[Line]:
    """Yield the lines of the file; only a newline (0x0A) ends one."""
    number = 0
    while content := file.readline(limit + 1):
        number += 1
        if content[-1:] == b"\n":
            yield Line(number, content[:-1], ended=True, too_long=False)
        elif len(content) <= limit:
            yield Line(number, content, ended=False, too_long=False)
        else:
            yield Line(number, content[:limit], _skip_line(file, limit), too_long=True)


def _skip_line(file: BinaryIO, limit: int) -> bool:
    while content := file.readline(limit):
        if content[-1:] == b"\n":
            return True
    return False
