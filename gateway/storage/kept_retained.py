"""Retained messages as they are read back from the disk."""

from gateway.mqtt.message import Message
from gateway.mqtt.plain_message import Origin, PlainMessage
from gateway.session.kept import seconds_since
from gateway.storage import message_row
from gateway.storage.kept_deliveries import TEXTS
from gateway.storage.reading import Values

_COLUMNS = ", ".join(
    f"CAST({column} AS BLOB)" if column in TEXTS else column for column in message_row.COLUMNS
)

READ = f"SELECT id, {_COLUMNS} FROM retained ORDER BY id"  # noqa: S608 - our columns
"""All of them, with texts as bytes (`Reading.rows`)."""

_PROPERTIES = 1 + len(message_row.PLAIN_COLUMNS)
_NO_PROPERTIES = (None,) * len(message_row.PROPERTY_COLUMNS)


class RetainedReader:
    """Reads the last message of each topic; salvage may have found earlier ones, too.

    `messages` and `rows`, the numbers of their rows, are by topic; `superseded` are the rows of
    earlier ones. A row that cannot be read counts as its topic's all the same, so that the next
    message takes its place. `monotonic` (s) and `wall` (ms since 1970) are now.
    """

    def __init__(self, monotonic: float, wall: int) -> None:
        self.messages: dict[str, Message | PlainMessage] = {}
        self.rows: dict[str, int] = {}
        self.superseded: list[int] = []
        self._monotonic = monotonic
        self._wall = wall
        self._said: Values = ()  # of the last origin, which the next messages mostly have, too
        self._origin = Origin("", None, 0, 0, 0.0, 0.0)
        self._names: dict[bytes | None, str | None] = {None: None}

    def read(self, values: Values) -> None:
        """Take a row of READ; raise ValueError, TypeError or KeyError for one that says nothing."""
        topic = values[1].decode()
        before = self.rows.get(topic)
        self.rows[topic] = values[0]
        if values[_PROPERTIES:] == _NO_PROPERTIES:
            said = values[3:_PROPERTIES]
            if said != self._said:
                self._origin = self._make_origin(*said)
                self._said = said
            self.messages[topic] = PlainMessage(topic, values[2], self._origin)
        else:
            row = (
                value.decode() if column in TEXTS and value is not None else value
                for column, value in zip(message_row.COLUMNS, values[1:], strict=True)
            )
            self.messages[topic] = message_row.from_row(tuple(row), self._monotonic, self._wall)
        if before is not None:
            self.superseded.append(before)

    def _make_origin(
        self, qos: int, _: int, received_at: int, client_id: bytes | None, username: bytes | None
    ) -> Origin:
        """Return what messages have in common that one client published in one turn."""
        for data in (client_id, username):
            if data is not None and data not in self._names:
                self._names[data] = data.decode()
        return Origin(
            self._names[client_id] or "",
            self._names[username],
            message_row.check_qos(qos),
            received_at,
            self._monotonic - seconds_since(received_at, self._wall),
            0.0,
        )
