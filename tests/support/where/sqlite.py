"""Recorded messages in SQLite, and what an expression's translation gives for them."""

import sqlite3
from types import TracebackType
from typing import Self

from gateway.mqtt.message import Message
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.history.reader import register_where_functions
from gateway.storage.history.row import HISTORY_COLUMNS, HistoryRow, to_history_columns
from gateway.where.compile import COMPILER
from gateway.where.language.expression import Expression
from gateway.where.sqlite.to_sqlite import SqliteFilter


class Recorded:
    """A table like the gateway's history, but that a message may have no time."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        register_where_functions(self.connection)
        self.connection.execute(_TABLE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()

    def record(self, *messages: Message) -> None:
        self.connection.execute("DELETE FROM history")
        for identifier, message in enumerate(messages):
            columns = list(to_history_columns(HistoryRow(identifier, 0, "", message, ())))
            columns[HISTORY_COLUMNS.index("time")] = message.received_at
            self.connection.execute(_INSERT, columns)

    def results(self, where: SqliteFilter) -> list[bool | None]:
        """Give the value of the condition for each message."""
        query = f"SELECT {where.condition} FROM history ORDER BY id"
        rows = self.connection.execute(query, dict(where.parameters)).fetchall()
        return [{1: True, 0: False, None: None}[value] for (value,) in rows]

    def kept(self, where: SqliteFilter) -> int:
        """Count the messages that a WHERE with the condition keeps."""
        query = f"SELECT count(*) FROM history WHERE {where.condition}"
        count: int = self.connection.execute(query, dict(where.parameters)).fetchone()[0]
        return count


def evaluated(expression: Expression, message: Message) -> bool | None:
    return COMPILER.truth(expression)(message)


_TYPES = {
    **dict.fromkeys(("id", "start", "payload_is_json", "time", "qos", "retain"), "INTEGER"),
    **dict.fromkeys(("message_expiry", "payload_format"), "INTEGER"),
    **dict.fromkeys(("payload", "correlation_data"), "BLOB"),
}
_COLUMNS = ", ".join(f"{name} {_TYPES.get(name, 'TEXT')}" for name in HISTORY_COLUMNS)
_TABLE = f"CREATE TABLE history ({_COLUMNS}) STRICT"
_INSERT = insert_statement("history", HISTORY_COLUMNS)
