"""The fast way through the sound parts of a damaged database: SQLite itself, as far as it goes."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.salvage.files import odd_file
from gateway.salvage.layouts import JSON_COLUMNS, Layout, is_json, layout_of
from gateway.salvage.wal import PAGE_BYTES

ALL = (-(1 << 63), (1 << 63) - 1)
"""The lowest and the highest rowid."""

_READ_BY = ((16, PAGE_BYTES.to_bytes(2, "big")), (20, b"\0"), (56, b"\0\0\0\1"))
"""By their offset in the header, what SQLite reads every row by: the size of a page, the bytes at
its end that hold nothing, the encoding of texts (sqlite.org/fileformat2.html, 1.3). With another
value it finds as many rows as there are, and other contents."""


class Shortcut:
    """Reads the rows of a range with SQLite; who asks compares them, and reads pages otherwise."""

    def __init__(self, path: Path, header: bytes) -> None:
        """Open the database if its first page, which begins with `header`, can be trusted."""
        self._compared: set[str] = set()
        is_usable = _is_safe(path) and _is_ours(header)
        uri = f"{path.absolute().as_uri()}?mode=ro" if is_usable else ":memory:"
        try:
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        except sqlite3.Error:
            self._connection = sqlite3.connect(":memory:")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def rows(self, layout: Layout, first: int, last: int) -> Iterator[tuple[Any, ...]]:
        """Yield the rowids from `first` to `last`, each with the values as the layout has them.

        All rows of a table WITHOUT ROWID, with 0. Raises sqlite3.Error or ValueError at damage.
        """
        self._compare(layout)
        names = ", ".join(f'"{column.name}"' for column in layout.columns)
        rowid = "0," if layout.without_rowid else "rowid,"
        statement = " ".join(("SELECT", rowid, names, "FROM", f'"{layout.name}"', "NOT INDEXED"))
        bounds: tuple[int, ...] = ()
        if not layout.without_rowid:
            statement += " WHERE rowid BETWEEN ? AND ?"
            bounds = (first, last)
        texts = [i for i, column in enumerate(layout.columns, 1) if column.name in JSON_COLUMNS]
        for row in self._connection.execute(statement, bounds):
            for place in texts:
                if row[place] is not None and not is_json(row[place]):
                    raise ValueError("not JSON")
            yield row

    def _compare(self, layout: Layout) -> None:
        """Raise unless SQLite sees this layout: it takes the name of no column for a text."""
        if layout.name not in self._compared:
            if layout_of(self._connection, layout.name) != layout:
                raise ValueError("a damaged statement")
            self._compared.add(layout.name)


def _is_ours(header: bytes) -> bool:
    return all(header[offset : offset + len(value)] == value for offset, value in _READ_BY)


def _is_safe(path: Path) -> bool:
    """Return whether SQLite does no harm by opening it.

    It deletes the log of a database that is empty.
    """
    return path.is_file() and path.stat().st_size > 0 and odd_file(path) is None
