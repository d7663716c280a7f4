"""Events that a person may want to know of, on disk: the newest thousand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.storage.engine.database import Database
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.writer import Writer

MAXIMUM_EVENTS = 1_000
"""Events that are stored; the oldest are deleted."""

_COLUMNS = ("id", "time", "until", "severity", "kind", "subject", "text", "count")
_INSERT = insert_statement("events", _COLUMNS)
_UPDATE = "UPDATE events SET until = ?, text = ?, count = ? WHERE id = ?"
_FORGET = "DELETE FROM events WHERE id <= ?"
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM events"  # noqa: S608 - our own names
_OPEN = f"{_SELECT} WHERE until IS NULL ORDER BY id"
_LAST = "SELECT coalesce(max(id), 0) FROM events"
_PAGE = (
    f"{_SELECT} WHERE id > ? AND coalesce(until, ?) >= ? AND (? IS NULL OR kind = ?)"
    " ORDER BY id DESC LIMIT ? OFFSET ?"
)
_COUNT = (
    "SELECT count(*) FROM events"
    " WHERE id > ? AND coalesce(until, ?) >= ? AND (? IS NULL OR kind = ?)"
)

EVER = 2**62
"""A time (ms since 1970) after all others."""


@dataclass(slots=True)
class Event:
    """Something that happened `count` times between two times, or lasts: then `until` is None."""

    id: int
    time: int
    until: int | None
    severity: str
    kind: str
    subject: str
    text: str
    count: int = 1


class EventRows:
    """The table of events; ids rise by one."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self.last_id = 0
        self.batch = 0
        """The number of the commit with the last change."""

    async def load(self) -> list[Event]:
        """Return the events of an earlier run that lasted to its end; call it once."""
        rows = await self._database.reader.query(_LAST, (), lambda cursor: cursor.fetchall())
        self.last_id = int(rows[0][0])
        found = await self._database.reader.query(_OPEN, (), lambda cursor: cursor.fetchall())
        return [_event(values) for values in found]

    def add(self, event: Event) -> None:
        """Write a new event, which gets its id; nobody waits for the commit."""
        self.last_id = event.id = self.last_id + 1
        values = (
            *(event.id, event.time, event.until, event.severity),
            *(event.kind, event.subject, event.text, event.count),
        )
        self.batch = self._writer.add(_INSERT, values, None)
        if event.id > MAXIMUM_EVENTS:
            self._writer.add(_FORGET, (event.id - MAXIMUM_EVENTS,), None)

    def save(self, event: Event) -> None:
        """Write what has changed of an event."""
        self.batch = self._writer.add(
            _UPDATE, (event.until, event.text, event.count, event.id), None
        )

    async def read(
        self, after: int, since: int, kind: str | None, offset: int, limit: int
    ) -> tuple[int, list[Event]]:
        """Return how many events there are, and a page of them, the newest first.

        Those with an id above `after` that lasted at `since` (ms since 1970) or later.
        """
        where = (after, EVER, since, kind, kind)
        queries = self._database.queries
        total = await queries.rows(_COUNT, where)
        found = await queries.rows(_PAGE, (*where, limit, offset))
        return int(total[0][0]), [_event(values) for values in found]


def _event(values: Sequence[Any]) -> Event:
    return Event(*values)
