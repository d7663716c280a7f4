"""Whether the files that SQLite has open are still those that the next start will find."""

import os
import struct
from pathlib import Path

from gateway.salvage.wal import FRAME_BYTES, HEADER_BYTES
from gateway.storage.engine.log_file import log_of

_INDEX_HEADER = 20
"""Bytes of the log's index that are read: the count of changes stands at 8, that of frames at 16
(sqlite.org/walformat.html, 2.1)."""


class OwnFiles:
    """The files of an open database, as they were when it was opened.

    Whoever deletes or renames them leaves SQLite with files that it can use and nobody else can
    find: it commits as ever, and after the next start all is gone. A look takes microseconds.

    The index is kept open, and `close` is for when the database is closed: a process that closes
    any descriptor of a file gives up all its locks on it (fcntl(2)), SQLite's among them, and
    whoever opens the database next would take it for nobody's and truncate the index.
    """

    def __init__(self, path: Path) -> None:
        """Note which files these are; raise OSError if the database is not there."""
        self._path = path
        self._log = log_of(path)
        self._index = path.with_name(f"{path.name}-shm")
        try:
            self._descriptor = os.open(self._index, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1
        self._known = {each: _identity(each) for each in (path, self._log, self._index)}
        if self._known[path] is None:
            raise FileNotFoundError(path)

    def fault(self) -> str:
        """Return what has become of one of them, "" while all is well."""
        for each, known in self._known.items():
            if known is not None and (found := _identity(each)) != known:
                return f"{each} was {'deleted or renamed' if found is None else 'replaced'}"
        return self._truncated()

    def close(self) -> None:
        """Look no more; the database must be closed before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_truncated(self) -> bool:
        """Whether something is missing in the files themselves, so that no copy has it either."""
        return bool(self._truncated())

    def _truncated(self) -> str:
        if _size(self._path) == 0:
            return f"{self._path} was truncated"
        before = self._frames()
        size = _size(self._log)
        _, frames = before
        if not frames or size is None:
            return ""
        if size < HEADER_BYTES + frames * FRAME_BYTES or not _begins(self._log):
            # The log grows before its index says so, and is cut only after that: it is another's
            # doing, unless the index has changed meanwhile.
            return f"{self._log} was truncated" if self._frames() == before else ""
        return ""

    def _frames(self) -> tuple[int, int]:
        """Return how often the index of the log was changed, and how many frames are in use."""
        try:
            header = os.pread(self._descriptor, _INDEX_HEADER, 0)
        except OSError:
            return 0, 0
        if len(header) < _INDEX_HEADER:
            return 0, 0
        changes, frames = struct.unpack_from("=8xI4xI", header)
        return changes, frames


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a third of the time, after each commit
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_nlink else None


def _begins(log: Path) -> bool:
    """Return whether a log still has its beginning: what is written behind leaves zeros there."""
    try:
        with log.open("rb", buffering=0) as file:
            return any(file.read(HEADER_BYTES))
    except OSError:
        return True


def _size(path: Path) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a third of the time, after each commit
    except OSError:
        return None
