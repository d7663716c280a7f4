"""Messages of a gateway's database as landing records, read without writing to it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError

TABLES = ("outbox", "rejected", "history")
"""What waits for the fleet, what its broker refused, and what the gateway keeps of the past."""

ROWS = 10_000
"""Rows that are fetched at a time."""

_MESSAGE = (
    "time, topic, payload, qos, retain, content_type, user_properties, client_id, username, "
    "response_topic, correlation_data, message_expiry, payload_format"
)
_SELECT = {
    "outbox": f"SELECT epoch, stream, seq, NULL, {_MESSAGE} FROM outbox",  # noqa: S608 - constants
    "rejected": f"SELECT epoch, stream, seq, NULL, {_MESSAGE} FROM rejected",  # noqa: S608 - constants
    "history": f"SELECT epoch, NULL, NULL, rules, {_MESSAGE} FROM history",  # noqa: S608 - constants
}

Values = tuple[object, ...]
"""A record's fields in the order of columns.RECORD."""


def ids(database: Path, table: str) -> tuple[int, int]:
    """Return the lowest and the highest id of a table, (1, 0) if it has no rows.

    Raises PipelineError if the file is not a gateway's database.
    """
    if table not in TABLES:
        raise PipelineError(f"table {table!r} is none of {', '.join(TABLES)}")
    try:
        with closing(_open(database)) as connection:
            low, high = connection.execute(f"SELECT min(id), max(id) FROM {table}").fetchone()  # noqa: S608 - of TABLES
    except sqlite3.Error as error:
        raise PipelineError(f"{database} is no gateway's database: {error}") from None
    return (1, 0) if low is None else (low, high)


def records(
    database: Path, table: str, gateway_id: str, first: int, last: int
) -> Iterator[list[Values]]:
    """Yield the records of the rows with ids from `first` to `last`, some at a time.

    A message of the history gives a record for each stream in which it has a number.
    """
    with closing(_open(database)) as connection:
        cursor = connection.execute(f"{_SELECT[table]} WHERE id BETWEEN ? AND ?", (first, last))
        while rows := cursor.fetchmany(ROWS):
            yield [record for row in rows for record in _records(gateway_id, *row)]


def _records(
    gateway_id: str, epoch: str, stream: str | None, seq: int | None, rules: str | None, *rest: Any
) -> Iterator[Values]:
    numbers = [(stream, seq)] if rules is None else [each[:2] for each in json.loads(rules)]
    time, topic, payload, qos, retain, content_type, pairs, client, user, *more = rest
    properties = [{"name": name, "value": value} for name, value in json.loads(pairs or "[]")]
    same = (content_type, properties, client, user, *more, None)
    for named, number in numbers:
        key = (gateway_id, epoch, named, number)
        yield (*key, time, None, topic, payload, qos, bool(retain), True, *same)


def _open(database: Path) -> sqlite3.Connection:
    if not database.is_file():
        raise PipelineError(f"{database} is not a file")
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
