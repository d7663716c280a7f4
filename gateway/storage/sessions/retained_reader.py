"""Retained messages as they are read back from the disk."""

from gateway.mqtt.publication import Publication
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS
from gateway.storage.engine.reading import Values
from gateway.storage.sessions import message_row
from gateway.storage.sessions.stored_spans import TEXTS

_COLUMNS = ", ".join(
    f"CAST({column} AS BLOB)" if column in TEXTS else column for column in MESSAGE_COLUMNS
)

READ = f"SELECT id, {_COLUMNS} FROM retained ORDER BY id"  # noqa: S608 - our columns
"""All of them, with texts as bytes (`Reading.rows`)."""


class RetainedReader:
    """Reads the last message of each topic; salvage may have found earlier ones, too.

    `messages` and `rows`, the numbers of their rows, are by topic; `superseded` are the rows of
    earlier ones. A row that cannot be read counts as its topic's all the same, so that the next
    message takes its place. `monotonic` (s) and `wall` (ms since 1970) are now.
    """

    def __init__(self, monotonic: float, wall: int) -> None:
        self.messages: dict[str, Publication] = {}
        self.rows: dict[str, int] = {}
        self.superseded: list[int] = []
        self._monotonic = monotonic
        self._wall = wall
        self._names: dict[str | None, str | None] = {}  # of clients, which messages share

    def read(self, values: Values) -> None:
        """Take a row of READ; raise ValueError, TypeError or KeyError for one that says nothing."""
        topic = values[1].decode()
        before = self.rows.get(topic)
        self.rows[topic] = values[0]
        row = (
            value.decode() if column in TEXTS and value is not None else value
            for column, value in zip(MESSAGE_COLUMNS, values[1:], strict=True)
        )
        publication = message_row.from_row(tuple(row), self._monotonic, self._wall)
        names = self._names
        publication.client_id = names.setdefault(publication.client_id, publication.client_id)
        publication.username = names.setdefault(publication.username, publication.username)
        self.messages[topic] = publication
        if before is not None:
            self.superseded.append(before)
