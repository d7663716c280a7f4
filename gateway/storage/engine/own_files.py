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
    find: it commits as ever, and after the next start all is gone. A check takes microseconds.

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
        found = _stat(path)
        self._bytes = 0 if found is None else found.st_size
        self._known = {each: _identity(_stat(each)) for each in (path, self._log, self._index)}
        if self._known[path] is None:
            raise FileNotFoundError(path)

    def fault(self) -> str:
        """Return what has become of one of them, "" while all is well."""
        return self._fault()[0]

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
        return self._fault()[1]

    def _fault(self) -> tuple[str, bool]:
        """Return the fault, and whether it is a file that was truncated."""
        # The log grows before its index says so, so its size is asked for behind the index. It is
        # cut only after that, as the database is: what is short then is another's doing, unless
        # the index has changed meanwhile.
        before = self._read_index()
        sizes: list[int | None] = []
        for each, known in self._known.items():
            found = _stat(each)
            if found is None or not found.st_nlink:
                if known is not None:
                    return f"{each} was deleted or renamed", False
                found = None
            elif known is not None and (found.st_dev, found.st_ino) != known:
                return f"{each} was replaced", False
            sizes.append(None if found is None else found.st_size)
        size, log_size, _ = sizes
        if size == 0:
            return f"{self._path} was truncated", True
        short = self._path if self._lacks_pages(size, before) else None
        if self._lacks_frames(log_size, before):
            short = self._log
        if short and self._read_index() == before:
            return f"{short} was truncated", True
        return "", False

    def _lacks_frames(self, size: int | None, index: _Index) -> bool:
        """Return whether frames that the index knows are not in a log of this size."""
        _, frames, _ = index
        if not frames or size is None:
            return False
        return size < HEADER_BYTES + frames * frame_bytes(self._page_bytes) or not _begins(
            self._log
        )

    def _lacks_pages(self, size: int | None, index: _Index) -> bool:
        """Return whether pages are neither in a database of this size nor in its log.

        The log is read only if the database is shorter than at the last check, as it is after it
        has given space back.
        """
        _, frames, pages = index
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


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - a third of the time, after each commit
    except OSError:
        return None


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None or not found.st_nlink else (found.st_dev, found.st_ino)


def _begins(log: Path) -> bool:
    """Return whether a log still has its beginning: what is written behind leaves zeros there."""
    try:
        with log.open("rb", buffering=0) as file:
            return any(file.read(HEADER_BYTES))
    except OSError:
        return True
