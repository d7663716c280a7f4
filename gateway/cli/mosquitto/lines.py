"""Reads the lines of a mosquitto.conf, and of the files of its include_dir."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.errors import TidegateError

MAXIMUM_BYTES = 4 * 1024 * 1024
"""Bytes of a file; nobody writes as much by hand."""


class Line(NamedTuple):
    """An option with its value and position."""

    file: Path
    number: int
    option: str
    value: str

    @property
    def place(self) -> str:
        """Return the file and the number of the line."""
        return f"{self.file}:{self.number}"


def lines_of(file: Path, *, included: bool = False) -> Iterator[Line]:
    """Yield the non-empty lines, those of an include_dir in its place.

    Mosquitto reads the names in an include_dir that end with `.conf`, in byte order. Raises
    TidegateError if a file or a folder cannot be read.
    """
    for number, text in enumerate(_text(file).split("\n"), start=1):
        stripped = text.strip()
        if not stripped or stripped.startswith("#"):
            continue
        option, _, value = stripped.partition(" ")
        line = Line(file, number, option, value.strip())
        yield line
        if option == "include_dir" and not included:
            for each in _included(line):
                yield from lines_of(each, included=True)


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
        if len(data) > MAXIMUM_BYTES:
            raise TidegateError(f"{file}: {len(data):,} bytes; at most {MAXIMUM_BYTES:,} are read")
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\t", " ")
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TidegateError(f"{file}: not UTF-8: {error.reason} at byte {error.start}") from error


def _included(line: Line) -> list[Path]:
    folder = line.file.parent / line.value  # an absolute one stays as it is
    try:
        names = [each for each in folder.iterdir() if each.name.endswith(".conf")]
    except OSError as error:
        raise TidegateError(f"{line.place}: include_dir {folder}: {error.strerror}") from error
    return sorted(names, key=lambda each: each.name.encode())
