"""Finds out how a database's pages are read: their size, their use, and the encoding of texts.

The header has these values (sqlite.org/fileformat2.html, 1.3), which damage may have changed: they
are used if the pages themselves agree.
"""

import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PAGE_BYTES = 1024
"""The page size of every database that the gateway makes.

A commit writes whole pages of each table that it changes: five tables for a sensor's reading. With
SQLite's own 4,096 bytes that was twice as much
(docs/understand/decisions/2026-11-23-small-pages.md).
"""

SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)

MAGIC = b"SQLite format 3\0"

SAMPLE_PAGES = 200
"""Pages of a file that are sampled to find their size."""

SCHEMA_BYTES = 256 * 1024
"""Bytes at the beginning of a file that are searched for a statement of the schema."""

_PAGE_KINDS = {2: 12, 5: 12, 10: 8, 13: 8}
"""The first byte of a b-tree page, and the size of its header."""

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"

Read = Callable[[int, int], bytes]
"""Returns the bytes at an offset, as many as there are."""


class Form(NamedTuple):
    """The size of pages, the used part of each, the encoding, and whether there is a map.

    `has_map` is whether pointer map pages have the parent of each page (`auto_vacuum`).
    """

    page_bytes: int = PAGE_BYTES
    usable: int = PAGE_BYTES
    encoding: str = "utf-8"
    has_map: bool = True

    @property
    def least(self) -> int:
        """The least bytes of a long record in its cell."""
        return (self.usable - 12) * 32 // 255 - 23

    @property
    def most_in_table(self) -> int:
        """The bytes of the longest record that is completely in a table's cell."""
        return self.usable - 35

    @property
    def most_in_index(self) -> int:
        """The same for an index, and a table WITHOUT ROWID."""
        return (self.usable - 12) * 64 // 255 - 23


def stated_page_bytes(header: bytes) -> int:
    """Return the page size in a database's header, 0 without one."""
    if len(header) < 18:
        return 0
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size in SIZES else 0


def size_in_log(header: bytes) -> int:
    """Return the page size in the header of a write-ahead log, 0 without one."""
    size = int.from_bytes(header[8:12], "big")
    return size if size in SIZES else 0


def form_of(read: Read, size: int, log_size: int) -> Form:
    """Return the form of a database of `size` bytes; `log_size` is the page size of its log."""
    header = read(0, 100)
    page_bytes = _page_bytes(read, size, (log_size, stated_page_bytes(header), PAGE_BYTES))
    return Form(
        page_bytes,
        page_bytes - _reserved(read, size, header, page_bytes),
        _encoding(read(0, SCHEMA_BYTES), header),
        _has_map(header, read(page_bytes, 1)),
    )


def _has_map(header: bytes, second: bytes) -> bool:
    """Return whether the second page, given its beginning, is a map page; else trust the header.

    The map begins with the root of the first table, as no b-tree page does.
    """
    if second == b"\1" or not second:
        return True
    if second[0] in _PAGE_KINDS:
        return False
    return any(header[52:56]) or not header.startswith(MAGIC)


def _page_bytes(read: Read, size: int, claimed: tuple[int, ...]) -> int:
    """Return the size that fits most pages, a stated one if it is possible."""
    if claimed[1:] == (PAGE_BYTES, PAGE_BYTES) and claimed[0] in (0, PAGE_BYTES):
        return PAGE_BYTES  # as the gateway makes it: no vote is needed

    def likeliness(page_bytes: int) -> float:
        return _likeliness(read, size, page_bytes)

    found = max((each for each in claimed if each), key=likeliness)
    return found if size < 2 * found or likeliness(found) > 0 else max(SIZES, key=likeliness)


def _likeliness(read: Read, size: int, page_bytes: int) -> float:
    """Return the fraction of pages that fit this size, less those that do not."""
    votes = [_vote(page) for page in _sample(read, size, page_bytes)]
    return sum(votes) / len(votes) if votes else 0.0


def _sample(read: Read, size: int, page_bytes: int) -> Iterator[bytes]:
    """Yield pages from all over the file, without the first."""
    count = size // page_bytes
    for number in range(1, count, max(1, count // SAMPLE_PAGES)):
        yield read(number * page_bytes, page_bytes)


def _vote(page: bytes) -> int:
    """Return 1 for a possible b-tree page, -1 for a part of one or several, 0 otherwise."""
    length = _PAGE_KINDS.get(page[0] if page else 0)
    if length is None:
        return 0
    count, content = struct.unpack_from(">HH", page, 3)
    end = length + 2 * count
    if not count or content < end or end > len(page):
        return 0
    offsets = struct.unpack_from(f">{count}H", page, length)
    if max(offsets) >= len(page) or min(offsets) < content:
        return -1
    # cells are written from the end: much free space after them means several pages
    return 1 if max(offsets) >= len(page) // 2 or count == 1 else -1


def _reserved(read: Read, size: int, header: bytes, page_bytes: int) -> int:
    """Return the unused bytes at the end of each page, if the pages agree."""
    claimed = header[20] if len(header) > 20 else 0
    if not claimed or page_bytes - claimed < 480:
        return 0
    trees = [page for page in _sample(read, size, page_bytes) if _vote(page) > 0]
    empty = sum(not any(page[-claimed:]) for page in trees)
    return claimed if 2 * empty > len(trees) or not trees else 0


def _encoding(beginning: bytes, header: bytes) -> str:
    """Return the encoding of the schema's statements, else the header's."""
    for encoding in _ENCODINGS:
        if "CREATE".encode(encoding) in beginning:
            return encoding
    claimed = header[59] if len(header) > 59 else 1
    return _ENCODINGS[claimed - 1] if claimed in (1, 2, 3) else _ENCODINGS[0]


def page_bytes_of(path: Path) -> int:
    """Return the page size of the database at `path`, PAGE_BYTES if it has none."""
    try:
        with path.open("rb") as file:
            return stated_page_bytes(file.read(100)) or PAGE_BYTES
    except OSError:
        return PAGE_BYTES


def reader(descriptor: int | None) -> Read:
    """Return a reader of an open file, which returns b"" for unreadable parts."""

    def read(offset: int, length: int) -> bytes:
        if descriptor is None:
            return b""
        try:
            return os.pread(descriptor, length, offset)
        except OSError:
            return b""

    return read


def odd_file(path: Path) -> Path | None:
    """Return one of SQLite's files of the database at `path` that is no regular file, or None.

    SQLite waits for ever at a FIFO, and opens nothing beside a dangling link.
    """
    if path.exists() and not path.is_file():
        return path
    beside = (path.with_name(path.name + suffix) for suffix in ("-journal", "-wal", "-shm"))
    return next((each for each in beside if os.path.lexists(each) and not each.is_file()), None)


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables, without SQLite's own."""
    return [str(name) for (name,) in connection.execute(_TABLES)]
