"""strace on a running gateway: its system calls in order, or made to fail, or made deadly."""

import codecs
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.requirements import find_program

SECONDS = 60.0
"""How long strace may take to attach."""

PATIENCE = 10.0
"""How long it may take to detach."""

DATABASE_FILES = ("tidegate.db", "tidegate.db-wal", "tidegate.db-shm")

ENDS = ("", "-wal", "-shm", "-journal")
"""What the names of SQLite's files of one database end with."""

_LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?: resumed>|\()")
_RESULT = re.compile(r"\) += (-?\d+|\?)[^\"]*$")
_FILE = re.compile(r"\((\d+)<([^>]*)>")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class Call:
    """A system call that has ended: where its begin and its end stand among all lines."""

    name: str
    file: str
    data: bytes
    result: int
    began: int
    ended: int


class Strace:
    """A tracer attached to every thread of a process; what it saw is in `file`.

    `inject` are its expressions of that name, such as `fdatasync:error=EIO:when=3`; they count
    the calls of each thread, from now on, and only those on `paths` if there are any.
    """

    def __init__(
        self,
        process: int,
        file: Path,
        calls: Sequence[str],
        *,
        inject: Sequence[str] = (),
        paths: Sequence[Path] = (),
    ) -> None:
        self.file = file
        self._process = process
        self._strace = subprocess.Popen(
            [*_command(file, calls, inject, paths), "-p", str(process)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        deadline = time.monotonic() + SECONDS
        while not self._attached():
            assert self._strace.poll() is None, self._complaint()
            assert time.monotonic() < deadline, "strace does not attach"
            time.sleep(0.005)
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Detach: from now on no call fails.

        strace hangs when it is to detach from a thread that has just died: then it is killed.
        """
        if self._strace.poll() is None:
            self._strace.send_signal(signal.SIGINT)
        try:
            self._strace.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._strace.kill()
            self._strace.communicate()

    @property
    def injected(self) -> int:
        """How many calls were tampered with so far."""
        return self.file.read_text(errors="replace").count("(INJECTED)")

    def _attached(self) -> bool:
        tasks = list(Path(f"/proc/{self._process}/task").glob("*/status"))
        return bool(tasks) and all("TracerPid:\t0\n" not in task.read_text() for task in tasks)

    def _complaint(self) -> str:
        return self._strace.communicate(timeout=SECONDS)[1].decode()


def tracer(file: Path, calls: Sequence[str], inject: str, paths: Sequence[Path] = ()) -> list[str]:
    """Return words before a command with which it runs under strace, still its starter's child."""
    return [*_command(file, calls, [inject], paths), "-D"]


def _command(
    file: Path, calls: Sequence[str], inject: Sequence[str], paths: Sequence[Path]
) -> list[str]:
    words = [find_program("strace") or "strace", "-f", "-q", "-y", "-s", "64", "-o", str(file)]
    words += ["-e", f"trace={','.join(calls)}"]
    words += [word for text in inject for word in ("-e", f"inject={text}")]
    return words + [word for path in paths for word in ("-P", str(path))]


def database_files(data: Path) -> list[Path]:
    """Return the files whose writes a fault is to strike."""
    return [data / name for name in DATABASE_FILES]


def start_files(data: Path) -> list[Path]:
    """Return the files and the folder that a start may write, or read for it."""
    names = (
        f"{each}{suffix}" for each in ("tidegate.db", "tidegate.db.salvaged") for suffix in ENDS
    )
    return [data, data / "lock", *(data / name for name in names)]


def calls_in(text: str) -> list[Call]:
    """Return the calls of a trace in the order in which they ended; failed ones too."""
    begun: dict[str, tuple[int, str]] = {}
    calls = []
    for place, line in enumerate(text.splitlines()):
        found = _LINE.match(line)
        if found is None:
            continue
        thread, name = found.groups()
        began, head = begun.pop(thread, (place, ""))
        if line.endswith("<unfinished ...>"):
            begun[thread] = (place, line)
            continue
        if line.endswith("<detached ...>"):
            continue
        calls.append(_call(name, head + line, began, place))
    return calls


def _call(name: str, text: str, began: int, ended: int) -> Call:
    file, data, result = _FILE.search(text), _TEXT.search(text), _RESULT.search(text)
    assert result is not None, text
    return Call(
        name,
        file.group(2) if file else "",
        codecs.escape_decode(data.group(1).encode())[0] if data else b"",
        -1 if result.group(1) == "?" else int(result.group(1)),
        began,
        ended,
    )
