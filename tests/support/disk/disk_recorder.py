"""What a gateway asks of the disk and what it tells its clients, recorded call by call."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.requirements import find_program

CALLS = (
    "openat,mkdir,rename,unlink,rmdir,write,writev,pwrite64,ftruncate,fsync,fdatasync,"
    "sendto,sendmsg,recvfrom"
)
LONGEST = 16 * 1024 * 1024
"""Bytes of a call that are recorded."""

_LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?: resumed>|\()")
_RESULT = re.compile(r"\) += (-?\d+)")
_FILE = re.compile(r"\((\d+)<([^>]*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_LAST_NUMBER = re.compile(r", (\d+)\) +=")


class Operation(NamedTuple):
    """A call that succeeded: where its begin and its end stand among all, and what it was about.

    `number` is the last argument, an offset or a size; `texts` are the paths or the bytes.
    """

    name: str
    began: int
    ended: int
    file: str
    texts: list[bytes]
    number: int
    result: int
    flags: str

    @property
    def data(self) -> bytes:
        """The bytes that were really written, sent or received."""
        return b"".join(self.texts)[: self.result]


def recorder(file: Path) -> list[str]:
    """Return words before a gateway's command with which all that it does is written to `file`."""
    strace = find_program("strace") or "strace"
    words = [strace, "-f", "-q", "-y", "-xx", "-s", str(LONGEST), "--seccomp-bpf", "-D"]
    return [*words, "-o", str(file), "-e", f"trace={CALLS}", "-e", "signal=none"]


def operations(text: str, first: int = 0) -> Iterator[Operation]:
    """Yield the calls of a recording in the order in which they ended; lines count from `first`.

    A look at what a socket has, which leaves it there, receives nothing.
    """
    begun: dict[str, tuple[int, str]] = {}
    for place, line in enumerate(text.splitlines(), first):
        found = _LINE.match(line)
        if found is None:
            continue
        thread, name = found.groups()
        began, head = begun.pop(thread, (place, ""))
        if line.endswith("<unfinished ...>"):
            begun[thread] = (place, line.removesuffix(" <unfinished ...>"))
        elif (result := _RESULT.search(line)) is not None and int(result.group(1)) >= 0:
            whole = head + (line.partition(" resumed>")[2] if head else line)
            if "MSG_PEEK" not in whole:
                yield _operation(name, whole, began, place, int(result.group(1)))


def _operation(name: str, text: str, began: int, ended: int, result: int) -> Operation:
    file, number = _FILE.search(text), _LAST_NUMBER.search(text)
    path = file.group(2) if file and not file.group(0).startswith("(AT_FDCWD") else ""
    texts = [_bytes(each) for each in _TEXT.findall(text)]
    return Operation(
        name,
        began,
        ended,
        _bytes(path).decode() if path.startswith("\\x") else path,
        texts,
        int(number.group(1)) if number else 0,
        result,
        text.partition("O_")[2].partition(" ")[0] if name == "openat" else "",
    )


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
