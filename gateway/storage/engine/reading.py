"""Reads rows at the start, one by one: a bad one is skipped and never stops the gateway."""

import logging
import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from gateway.counters import Counters
from gateway.storage.engine.connection import Connection
from gateway.storage.engine.damage import UNREADABLE, is_damage

logger = logging.getLogger(__name__)

Values = tuple[Any, ...]
T = TypeVar("T")


class Reading:
    """Makes values of rows; unreadable rows are logged and counted.

    The counter is `tidegate/storage/unreadable`.
    """

    def __init__(self, connection: Connection, counters: Counters) -> None:
        self._connection = connection
        self.counters = counters

    async def rows(
        self,
        statement: str,
        what: str,
        read: Callable[[Values], T],
        row: Values = (),
        enough: Callable[[T], bool] = lambda _: False,
        *,
        texts: bool = True,
    ) -> list[T]:
        """Return the result of `read` for each row; it runs in the connection's thread.

        `read` raises one of UNREADABLE for an invalid row. Reading ends with the first that is
        `enough`. A statement without `texts` returns them as BLOBs for `read` to decode, which
        saves a check of each value.
        """

        def fetch(cursor: sqlite3.Cursor) -> tuple[list[T], list[str]]:
            if texts:
                return _read_texts(cursor, what, read, enough)
            return _read(cursor, what, read, enough)

        found, faults = await self._connection.query(statement, row, fetch)
        for fault in faults:
            self.counters.add("tidegate/storage/unreadable")
            logger.error("left out of what the database holds: %s", fault)
        return found


def _read_texts(
    cursor: sqlite3.Cursor,
    what: str,
    read: Callable[[Values], T],
    enough: Callable[[T], bool],
) -> tuple[list[T], list[str]]:
    """Do the same as `fetch` if SQLite's own decoding would end the whole query.

    It does at the first text that is not UTF-8.
    """
    connection = cursor.connection
    connection.text_factory = lambda data: data.decode(errors="surrogateescape")
    try:
        return _read(cursor, what, lambda values: read(_checked(values)), enough)
    finally:
        connection.text_factory = str


def _read(
    cursor: sqlite3.Cursor,
    what: str,
    read: Callable[[Values], T],
    enough: Callable[[T], bool],
) -> tuple[list[T], list[str]]:
    """Return what could be read, and the faults of the rest."""
    found, faults = [], []
    try:
        for values in cursor:
            try:
                each = read(values)
                found.append(each)
                if enough(each):
                    break
            except UNREADABLE as error:
                faults.append(f"{what} {values[:2]!r}: {type(error).__name__}: {error}")
    except sqlite3.Error as error:
        if is_damage(error):
            raise  # the next start sets the database aside and salvages more than is read here
        faults.append(f"{what}, and all behind it: {error}")
    return found, faults


def _checked(values: Values) -> Values:
    for value in values:
        if isinstance(value, str) and not value.isascii():
            value.encode()  # raises for what was not UTF-8
    return values
