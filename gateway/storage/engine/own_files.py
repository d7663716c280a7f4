"""Checks that SQLite's open files are those that the next start will find; rescues them if not."""

import os
import struct
from os import SEEK_END, lseek, pread, readlink, stat
from pathlib import Path
from time import time

from gateway.clock import Clock
from gateway.salvage.wal import HEADER_BYTES, frame_bytes, page_numbers
from gateway.storage.engine.connection import Connection
from gateway.storage.engine.files import log_of, make_folder
from gateway.storage.engine.replace import put_in_place

_INDEX_HEADER = 48
"""Bytes of the header of the log's index, which is stored twice: the count of changes at 8, of
frames at 16, of the database's pages at 20 (sqlite.org/walformat.html, 2.1)."""

_Index = tuple[int, int, int]
"""These three."""

_UNKNOWN: _Index = (0, 0, 0)

RECENT = 4.0
"""Seconds for which a change of the folder may be followed by another with the same time: the
coarsest time of a folder (FAT) has two."""

_ZEROS = bytes(HEADER_BYTES)


class OwnFiles:
    """The files of an open database, as they were when it was opened.

    If somebody deletes or renames them, SQLite uses files that nobody else can find: it commits as
    before, and after the next start everything is lost.

    All stay open until the database is closed; then call `close`. A process that closes any
    descriptor of a file releases all its locks on it (fcntl(2)), SQLite's included. The next
    process that opens the database would find it unused and truncate the index.
    """

    def __init__(self, path: Path, page_bytes: int) -> None:
        """Note which files these are; raise OSError if the database does not exist."""
        self._path = path
        self._page_bytes = page_bytes
        self._log = log_of(path)
        files = (path, self._log, path.with_name(f"{path.name}-shm"))
        self._descriptors = [_opened(each) for each in files]
        self._known = {each: _identity(_stat(each)) for each in files}
        if self._known[path] is None:
            raise FileNotFoundError(path)
        links = [f"/proc/self/fd/{each}" for each in self._descriptors if each >= 0]
        self._names = [(link, _name(link)) for link in links]
        self._folder = str(path.parent)
        self._entries = _UNKNOWN  # the folder and its time, when all names were right
        found = _stat(path)
        self._bytes = 0 if found is None else found.st_size
        self._log_bytes = 0

    def are_unchanged(self) -> bool:
        """Return whether nothing was deleted, renamed, or truncated since the last call.

        It takes a few system calls, for each commit. After False, `fault` may still find everything
        in order: SQLite itself truncates its files at times. A file system mounted over the folder
        is not detected.
        """
        try:
            # one call instead of three slower ones: a deleted or renamed entry sets the time
            found = stat(self._folder)  # noqa: PTH116 - a third of the time, for each commit
            entries = found.st_dev, found.st_ino, found.st_ctime_ns
            if entries != self._entries:
                for link, name in self._names:
                    if readlink(link) != name:  # noqa: PTH115 - likewise
                        return False
                self._entries = entries if abs(time() - found.st_ctime) > RECENT else _UNKNOWN
        except OSError:
            return False
        return self.are_whole()

    def are_whole(self) -> bool:
        """Return whether nothing was truncated since the last call."""
        try:
            database, log, _ = self._descriptors
            size, log_size = lseek(database, 0, SEEK_END), lseek(log, 0, SEEK_END)
            if size < self._bytes or log_size < self._log_bytes:
                return False
            self._bytes, self._log_bytes = size, log_size
            # writing past the end of a truncated log leaves zeros at its beginning
            return pread(log, HEADER_BYTES, 0) != _ZEROS[:log_size]
        except OSError:
            return False

    def fault(self) -> str:
        """Return the fault of one of them, "" without any."""
        return self._fault()[0]

    def close(self) -> None:
        """Stop checking; the database must be closed before."""
        for each in self._descriptors:
            if each >= 0:
                os.close(each)
        self._descriptors = [-1, -1, -1]

    @property
    def is_truncated(self) -> bool:
        """Whether content of the open files is missing, so that no copy has it either.

        Files that now have their names do not count.
        """
        return self._fault()[1]

    def _fault(self) -> tuple[str, bool]:
        """Return the fault, and whether a file was truncated."""
        # SQLite extends the log before the index mentions it, so the size is read after the index.
        # It truncates the log only after changing the index, and the database likewise: a short
        # file is another's doing, unless the index has changed meanwhile.
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
        if not short and before != _UNKNOWN:
            self._log_bytes = log_size or 0
        return "", False

    def _lacks_frames(self, size: int | None, index: _Index) -> bool:
        """Return whether a log of this size lacks frames that the index lists."""
        _, frames, _ = index
        if not frames or size is None:
            return False
        if size < HEADER_BYTES + frames * frame_bytes(self._page_bytes):
            return True
        try:
            return pread(self._descriptors[1], HEADER_BYTES, 0) == _ZEROS
        except OSError:
            return False

    def _lacks_pages(self, size: int | None, index: _Index) -> bool:
        """Return whether pages are neither in a database of this size nor in its log.

        The log is read only if the database is shorter than at the last check, as after it has
        returned space.
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
        """Return the content of the log's index, _UNKNOWN while it is being written."""
        try:
            header = pread(self._descriptors[2], 2 * _INDEX_HEADER, 0)
        except OSError:
            return _UNKNOWN
        if header[:_INDEX_HEADER] != header[_INDEX_HEADER:] or len(header) < 2 * _INDEX_HEADER:
            return _UNKNOWN
        changes, frames, pages = struct.unpack_from("=8xI4xII", header)
        return changes, frames, pages


def _opened(path: Path) -> int:
    """Return a descriptor, -1 without such a file."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _name(link: str) -> str:
    """Return an open file's current name."""
    try:
        return readlink(link)  # noqa: PTH115 - as above
    except OSError:  # no /proc: every check is a thorough one
        return ""


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None or not found.st_nlink else (found.st_dev, found.st_ino)


RESCUED = ".rescued"
"""Suffix of the copy until it is complete and on disk."""


async def rescue(connection: Connection, path: Path, clock: Clock) -> None:
    """Copy all that the connection has committed to `path`; raise OSError, sqlite3.Error.

    Other files that now have the database's names are set aside.
    """
    copy = path.with_name(path.name + RESCUED)
    await connection.run(lambda: _make_way(copy))
    await connection.query("VACUUM INTO ?", (str(copy),), lambda cursor: cursor.fetchall())
    await connection.run(lambda: _settle(copy, path, clock))


def _make_way(copy: Path) -> None:
    make_folder(copy.parent)
    copy.unlink(missing_ok=True)


def _settle(copy: Path, path: Path, clock: Clock) -> None:
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
    put_in_place(copy, path, clock)
