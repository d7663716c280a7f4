"""The fast way through the sound parts of a damaged database: SQLite itself, as far as it goes."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.salvage.files import odd_file
from gateway.salvage.form import Form, said_size
from gateway.salvage.layouts import JSON_COLUMNS, Layout, is_json, layout_of

ALL = (-(1 << 63), (1 << 63) - 1)
"""The lowest and the highest rowid."""

_SAID = {"utf-8": 1, "utf-16-le": 2, "utf-16-be": 3}
"""What the header says of an encoding."""


class Shortcut:
    """Reads the rows of a range with SQLite; who asks compares them, and reads pages otherwise."""

    def __init__(self, path: Path, header: bytes, form: Form) -> None:
        """Open the database if its first page, which begins with `header`, can be trusted."""
        self._compared: set[str] = set()
        is_usable = _is_safe(path) and _is_of(header, form)
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


def _is_of(header: bytes, form: Form) -> bool:
    """Return whether SQLite reads pages and texts in this form.

    In another it finds as many rows as there are, and other contents.
    """
    if len(header) < 60 or said_size(header) != form.page_bytes:
        return False
    is_used_so = header[20] == form.page_bytes - form.usable
    return is_used_so and header[56:60] == _SAID[form.encoding].to_bytes(4, "big")


def _is_safe(path: Path) -> bool:
    """Return whether SQLite does no harm by opening it.

    It deletes the log of a database that is empty.
    """
    return path.is_file() and path.stat().st_size > 0 and odd_file(path) is None
