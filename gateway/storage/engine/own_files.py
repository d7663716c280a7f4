"""Whether the files that SQLite has open are still those that the next start will find."""

import os
import struct
from pathlib import Path

from gateway.salvage.wal import HEADER_BYTES, frame_bytes, page_numbers
from gateway.storage.engine.log_file import log_of

_INDEX_HEADER = 48
"""Bytes of the header of the log's index, which stands there twice: the count of changes at 8, that
of frames at 16, that of the database's pages at 20 (sqlite.org/walformat.html, 2.1)."""

_Index = tuple[int, int, int]
"""These three."""

_UNKNOWN: _Index = (0, 0, 0)


class OwnFiles:
    """The files of an open database, as they were when it was opened.

    Whoever deletes or renames them leaves SQLite with files that it can use and nobody else can
    find: it commits as ever, and after the next start all is gone. A look takes microseconds.

    The index is kept open, and `close` is for when the database is closed: a process that closes
    any descriptor of a file gives up all its locks on it (fcntl(2)), SQLite's among them, and
    whoever opens the database next would take it for nobody's and truncate the index.
    """

    def __init__(self, path: Path, page_bytes: int) -> None:
        """Note which files these are; raise OSError if the database is not there."""
        self._path = path
        self._page_bytes = page_bytes
        self._log = log_of(path)
        self._index = path.with_name(f"{path.name}-shm")
        try:
            self._descriptor = os.open(self._index, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1
        self._bytes = _size(path) or 0
        self._known = {each: _identity(each) for each in (path, self._log, self._index)}
        if self._known[path] is None:
            raise FileNotFoundError(path)

    def fault(self) -> str:
        """Return what has become of one of them, "" while all is well."""
        return self._gone() or self._truncated()

    def close(self) -> None:
        """Look no more; the database must be closed before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_truncated(self) -> bool:
        """Whether something is missing in the files themselves, so that no copy has it either.

        What stands under their names when they are gone says nothing of them.
        """
        return not self._gone() and bool(self._truncated())

    def _gone(self) -> str:
        for each, known in self._known.items():
            if known is not None and (found := _identity(each)) != known:
                return f"{each} was {'deleted or renamed' if found is None else 'replaced'}"
        return ""

    def _truncated(self) -> str:
        if _size(self._path) == 0:
            return f"{self._path} was truncated"
        before = self._read_index()
        short = self._path if self._lacks_pages(*before) else None
        if self._lacks_frames(*before):
            short = self._log
        # The log grows before its index says so, and is cut only after that, as the database is:
        # it is another's doing, unless the index has changed meanwhile.
        return f"{short} was truncated" if short and self._read_index() == before else ""

    def _lacks_frames(self, _changes: int, frames: int, _pages: int) -> bool:
        """Return whether frames that the index knows are not in the log."""
        size = _size(self._log)
        if not frames or size is None:
            return False
        return size < HEADER_BYTES + frames * frame_bytes(self._page_bytes) or not _begins(
            self._log
        )

    def _lacks_pages(self, _changes: int, frames: int, pages: int) -> bool:
        """Return whether pages are neither in the database nor in its log.

        The log is read only if the database is shorter than at the last look, as it is after it
        has given space back.
        """
        size = _size(self._path)
        if size is None:
            return False
        if size < min(self._bytes, pages * self._page_bytes):
            lacking = set(range(size // self._page_bytes + 1, pages + 1))
            try:
                if not lacking <= page_numbers(self._log, frames, self._page_bytes):
                    return True
            except OSError:
                return False
        self._bytes = size
        return False

    def _read_index(self) -> _Index:
        """Return what the index of the log says, _UNKNOWN while it is being written."""
        try:
            header = os.pread(self._descriptor, 2 * _INDEX_HEADER, 0)
        except OSError:
            return _UNKNOWN
        if header[:_INDEX_HEADER] != header[_INDEX_HEADER:] or len(header) < 2 * _INDEX_HEADER:
            return _UNKNOWN
        changes, frames, pages = struct.unpack_from("=8xI4xII", header)
        return changes, frames, pages


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
