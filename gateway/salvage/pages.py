"""The pages of a database that SQLite may refuse to open, with its write-ahead log applied."""

import os
import struct
from pathlib import Path

from gateway.salvage.form import MAGIC, form_of, reader
from gateway.salvage.wal import Log, log_size, read_log

ROOT, FREE, FIRST_OVERFLOW, NEXT_OVERFLOW, TREE = range(1, 6)
"""The kinds of pages in a pointer map."""

UNKNOWN = (0, 0)
"""The entry of a damaged pointer map: unknown."""

LOCKED_BYTE = 0x40000000
"""The page with this byte holds SQLite's locks and no data."""


class Pages:
    """Reads pages by their number, from 1; raises OSError only if it cannot open the files.

    `count` is how many there should be, which may be more than a truncated file has; `form` is how
    they are read.
    """

    def __init__(self, path: Path, *, with_log: bool = True) -> None:
        self._log_path = path.with_name(path.name + "-wal")
        self._file = _open(path)
        self._log_file = _open(self._log_path)
        size = 0 if self._file is None else os.fstat(self._file).st_size
        log_pages = log_size(self._log_path) if with_log else 0
        self.form = form_of(reader(self._file), size, log_pages)
        page_bytes = self.form.page_bytes
        self._log = read_log(self._log_path, page_bytes) if with_log else Log(damaged=1)
        self._pending_page = LOCKED_BYTE // page_bytes + 1
        self._pointers = self.form.usable // 5  # of a map page: a kind and a parent for each page
        self._maps: dict[int, bytes] = {}  # by page
        self.of_long_records: set[int] = set()
        """Pages that were found to hold the rest of a long record."""
        self.count = self._count(-(-size // page_bytes))

    @property
    def log_is_sound(self) -> bool:
        """Whether SQLite reads the same: it stops at the first bad frame of the log."""
        return not self._log.damaged

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._file, self._log_file):
            if descriptor is not None:
                os.close(descriptor)

    def read(self, number: int) -> bytes:
        """Return the page, or b"" if it does not exist or cannot be read."""
        if not 1 <= number <= self.count:
            return b""
        size = self.form.page_bytes
        offset = self._log.pages.get(number)
        if offset is not None:
            page = reader(self._log_file)(offset, size)
        else:
            page = reader(self._file)((number - 1) * size, size)
        return page if len(page) == size else b""

    def map_entry(self, number: int) -> tuple[int, int]:
        """Return (kind, parent) of a page in the pointer map, UNKNOWN without an entry."""
        if not self.form.has_map:
            return UNKNOWN
        map_number = self._map_page_of(number)
        page = self._maps.get(map_number)
        if page is None:
            found = self.read(map_number)
            page = self._maps[map_number] = found if self._is_sound_map(map_number, found) else b""
        offset = 5 * (number - map_number - 1)
        if not page or not 0 <= offset <= self.form.usable - 5:
            return UNKNOWN
        kind, parent = struct.unpack_from(">BI", page, offset)
        return kind, parent

    def _is_sound_map(self, number: int, page: bytes) -> bool:
        """Return whether every entry of a pointer map page is one that SQLite could write."""
        entries = min(self._pointers, self.count - number)
        if not page or entries <= 0:
            return False
        for index in range(0, 5 * entries, 5):
            kind, parent = struct.unpack_from(">BI", page, index)
            if kind in (ROOT, FREE):
                if parent:
                    return False
            elif (kind, parent) != (0, 0) and (kind > TREE or not 1 <= parent <= self.count):
                return False  # zeros are for unused pages, such as that of the locks
        return True

    def _count(self, there: int) -> int:
        """Return how many pages there should be, if the file's size allows that many.

        A damaged frame of the log may claim four thousand million: reading them would take days.
        """
        most = 3 * max(there, 1, *self._log.pages)
        if self._log.page_count is not None and 0 < self._log.page_count <= most:
            return self._log.page_count
        return max(1, there, self._header_page_count(), *self._log.pages)

    def _header_page_count(self) -> int:
        """Return the header's number of pages; no more than three times the file.

        For a truncated file it is the true number; a damaged header may have any.
        """
        header = reader(self._file)(0, 100)
        if len(header) < 100 or not header.startswith(MAGIC):
            return 0
        in_header = int(struct.unpack_from(">I", header, 28)[0])
        there = 0 if self._file is None else os.fstat(self._file).st_size // self.form.page_bytes
        return in_header if in_header <= 3 * max(there, 1) else 0

    @property
    def first_of_tables(self) -> int:
        """The number of the page after that of the schema and the first one of the map."""
        return 3 if self.form.has_map else 2

    def holds_nothing(self, number: int) -> bool:
        """Return whether the page is one of the pointer map, or the one of the locks."""
        is_map = self.form.has_map and number == self._map_page_of(number)
        return number == self._pending_page or is_map

    def _map_page_of(self, number: int) -> int:
        """Return the map page with the entry of this page; a map page's own number."""
        span = self._pointers + 1
        found = (number - 2) // span * span + 2
        return found + 1 if found == self._pending_page else found


def _open(path: Path) -> int | None:
    """Return a descriptor, None without a file; raise OSError if it cannot be opened.

    Such an error says nothing about the content, and ignoring it would lose all of it.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
