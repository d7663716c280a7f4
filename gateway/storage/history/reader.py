"""The history for commands, which read it while a gateway runs."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from gateway.mqtt.message import Message
from gateway.storage.engine.database import database_file
from gateway.storage.engine.database_file import open_beside
from gateway.storage.history.history import RecordedRule
from gateway.storage.history.outcome_reader import Number, OutcomeReader
from gateway.storage.history.recorded import KEEP
from gateway.storage.history.row import HISTORY_COLUMNS, HistoryRow, from_history_columns
from gateway.storage.history.subscriptions import COLUMNS, RecordedSubscription
from gateway.where.compile import COMPILER
from gateway.where.evaluation.closures import Condition, Reader
from gateway.where.language.conversions import Value, to_number
from gateway.where.language.expression import PayloadPath, TopicMatches
from gateway.where.language.functions import remainder
from gateway.where.language.like import TextMatcher, like_matcher, parse_pattern
from gateway.where.sqlite.operand import (
    CONTAINER_BLOB,
    FALSE_BLOB,
    PATTERN_ESCAPE,
    TRUE_BLOB,
)
from gateway.where.sqlite.to_sqlite import SqliteFilter

_CACHED: Final = 256
"""Cached compiled paths, patterns and topic filters; the least used one is evicted."""

SqliteValue = int | float | str | bytes | None


def register_where_functions(connection: sqlite3.Connection) -> None:
    """Register the functions with `connection`, for rows of the gateway's history."""
    fields = _Fields()
    functions: list[tuple[str, int, Callable[..., SqliteValue]]] = [
        ("where_number", 1, _strict(to_number)),
        ("where_text", 1, _strict(lambda data: Message("", data).text())),
        ("where_payload", 2, fields.payload),
        ("where_user", 2, fields.user),
        ("where_bare", 3, fields.bare),
        ("where_topic_level", 2, _topic_level),
        ("where_topic_matches", 2, _topic_matches),
        ("where_remainder", 2, _strict(remainder)),
        ("where_length", 1, _strict(len)),
        ("where_substr", 3, _strict(lambda text, start, size: text[start - 1 :][:size])),
        ("where_like", 2, _strict(lambda text, pattern: _matcher(pattern)(text))),
    ]
    for name, arguments, function in functions:
        connection.create_function(name, arguments, function, deterministic=True)


def _strict(function: Callable[..., Any]) -> Callable[..., SqliteValue]:
    def with_null(*arguments: SqliteValue) -> SqliteValue:
        value: SqliteValue = None if None in arguments else function(*arguments)
        return value

    return with_null


class _Fields:
    """Reads fields of one row after another; a row is parsed once for all its fields."""

    def __init__(self) -> None:
        self._message = Message("")
        self._properties: str | None = None
        self._user: dict[str, str] = {}

    def payload(self, payload: bytes, steps: str) -> SqliteValue:
        if payload != self._message.payload:
            self._message = Message("", payload)
        return _tagged(_reader(steps)(self._message))

    def user(self, properties: str | None, key: str) -> SqliteValue:
        if properties != self._properties:
            self._properties = properties
            self._user = dict(json.loads(properties or "[]"))
        return self._user.get(key)

    def bare(self, properties: str | None, payload: bytes, name: str) -> SqliteValue:
        value = self.user(properties, name)
        return self.payload(payload, json.dumps([name])) if value is None else value


def _tagged(value: Value) -> SqliteValue:
    """Return TRUE, FALSE and containers as the blobs that represent them."""
    if isinstance(value, bool):
        return TRUE_BLOB if value else FALSE_BLOB
    return CONTAINER_BLOB if isinstance(value, dict | list) else value


def _topic_level(topic: str, index: int) -> str | None:
    levels = topic.split("/")
    return levels[index] if index < len(levels) else None


def _topic_matches(topic: str, topic_filter: str) -> SqliteValue:
    return _topic_test(topic_filter)(Message(topic))


@lru_cache(_CACHED)
def _reader(steps: str) -> Reader:
    return COMPILER.value(PayloadPath(tuple(json.loads(steps))))


@lru_cache(_CACHED)
def _topic_test(topic_filter: str) -> Condition:
    return COMPILER.truth(TopicMatches(topic_filter))


@lru_cache(_CACHED)
def _matcher(pattern: str) -> TextMatcher:
    return like_matcher(parse_pattern(pattern, PATTERN_ESCAPE))


_READ_META = "SELECT value FROM meta WHERE name = ?"
_SINCE = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE time >= ? ORDER BY id"  # noqa: S608 - our own names
_OLDEST = "SELECT time FROM history ORDER BY id LIMIT 1"
_SIZES = (
    "SELECT time, length(payload) + length(CAST(topic AS BLOB)) FROM history WHERE time >= :since"
)
_OF_EPOCH = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE epoch = ? AND instr(rules, ?)"  # noqa: S608 - our own names
_RULES = "SELECT place, stream, topic, expression, lane FROM history_rules WHERE start = ?"
_OF_TOPIC = (
    f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history"  # noqa: S608 - our own names
    " WHERE topic = ? AND (? IS NULL OR id < ?) ORDER BY id DESC LIMIT ?"
)
_LAST_START = "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'starts'"
_OF_START = "SELECT 1 FROM history WHERE epoch = ? AND start = ? LIMIT 1"
_SUBSCRIPTIONS = f"SELECT {', '.join(COLUMNS)} FROM history_subscriptions"  # noqa: S608 - the same
_PRESENT = f"{_SUBSCRIPTIONS} WHERE until IS NULL ORDER BY client_id, topic_filter"
_AT = (
    f"{_SUBSCRIPTIONS} WHERE since < ? AND (until IS NULL OR until >= ?)"
    " ORDER BY client_id, topic_filter"
)


class HistoryReader:
    """Reads the past from the database of a data folder; `outcomes` are those of messages.

    Of a topic's earlier messages `most` are read, or all.
    """

    def __init__(self, connection: sqlite3.Connection, most: int = -1) -> None:
        self._connection = connection
        self._most = most
        self.outcomes = OutcomeReader(connection)

    @property
    def on(self) -> bool:
        """Whether the gateway records a history."""
        try:
            noted = self._connection.execute(_READ_META, (KEEP,)).fetchone()
        except sqlite3.OperationalError:
            return False  # an older schema
        return noted is not None and noted[0] > 0

    def oldest(self) -> int | None:
        """Return when the oldest message was accepted (ms since 1970), None without one."""
        found = self._connection.execute(_OLDEST).fetchone()
        return None if found is None else int(found[0])

    def since(self, time: int) -> Iterator[HistoryRow]:
        """Yield the messages accepted from `time` on (ms since 1970), oldest first."""
        return map(from_history_columns, self._connection.execute(_SINCE, (time,)))

    def sizes(self, time: int, where: SqliteFilter) -> Iterator[tuple[int, int]]:
        """Yield time and bytes of topic and payload of the messages since `time` that pass.

        SQLite evaluates the filter; a residual is ignored.
        """
        query = f"{_SIZES} AND ({where.condition}) ORDER BY id"
        rows = self._connection.execute(query, {**where.parameters, "since": time})
        return ((accepted, size) for accepted, size in rows)

    def find(self, number: Number) -> HistoryRow | None:
        """Return the message with this number, None if it is not recorded."""
        epoch, stream, sequence = number
        begin = f'["{stream}",{sequence},'  # how the stream's entry begins (history_row)
        found = self._connection.execute(_OF_EPOCH, (epoch, begin))
        rows = map(from_history_columns, found)
        wanted = (stream, sequence)
        return next(
            (row for row in rows if any((n.stream, n.number) == wanted for n in row.numbers)), None
        )

    def rules(self, start: int) -> dict[int, RecordedRule]:
        """Return the rules of a start of the gateway by their index."""
        rows = self._connection.execute(_RULES, (start,))
        return {row[0]: RecordedRule(*row) for row in rows}

    def last_start(self) -> int:
        """Return the number of the gateway's last start, 0 before the first."""
        return int(self._connection.execute(_LAST_START).fetchone()[0])

    def earlier_epoch(self, epoch: str) -> bool:
        """Return whether the gateway has started again since it had this epoch."""
        present = self._connection.execute(_OF_START, (epoch, self.last_start())).fetchone()
        return present is None

    def of_topic(self, topic: str, before: int | None) -> list[HistoryRow]:
        """Return the messages of a topic, oldest first; those before the row of this id."""
        rows = self._connection.execute(_OF_TOPIC, (topic, before, before, self._most))
        return [from_history_columns(row) for row in rows][::-1]

    def last_of(self, topic: str) -> HistoryRow | None:
        """Return the last message of a topic, None if there is none."""
        found = self._connection.execute(_OF_TOPIC, (topic, None, None, 1)).fetchone()
        return None if found is None else from_history_columns(found)

    def subscriptions(self, at: int | None) -> list[RecordedSubscription]:
        """Return the subscriptions at the time of this row's message; for None the present ones."""
        statement = _PRESENT if at is None else _AT
        rows = self._connection.execute(statement, () if at is None else (at, at))
        return [
            RecordedSubscription(
                client_id, topic_filter, qos, bool(no_local), expression, bool(identity)
            )
            for client_id, topic_filter, qos, no_local, expression, identity in rows
        ]


@contextmanager
def open_history(folder: Path, most: int = -1) -> Iterator[HistoryReader | None]:
    """Open the database of a data folder for reading; None if there is none.

    Raises TidegateError if it cannot be read.
    """
    path = database_file(folder)
    if not path.exists():
        yield None
        return
    with open_beside(path) as connection:
        register_where_functions(connection)
        connection.execute("BEGIN")  # all queries see one moment
        yield HistoryReader(connection, most)
