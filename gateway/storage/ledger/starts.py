"""The starts of the gateway that are reported to the fleet, with their last numbers."""

import json
from dataclasses import dataclass, field
from typing import Any

from gateway.counters import Counters
from gateway.storage.engine.connection import Row
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

MAX_STARTS = 1_000
"""Unannounced starts without any row left; the oldest are forgotten."""

_NEWEST = "SELECT epoch, last FROM starts WHERE start < ? ORDER BY start DESC LIMIT 1"
_INSERT = (
    "INSERT OR REPLACE INTO starts (start, epoch, previous, last, announced)"
    " VALUES (?, ?, ?, '{}', 0)"
)
_DONE = "epoch NOT IN (SELECT epoch FROM outbox UNION SELECT epoch FROM ledger)"
_FORGET_REPORTED = f"DELETE FROM starts WHERE announced AND start < ? AND {_DONE}"  # noqa: S608 - fixed
_OLD = f"SELECT count(*) FROM starts WHERE NOT announced AND start <= ? AND {_DONE}"  # noqa: S608
_FORGET_OLD = f"DELETE FROM starts WHERE start <= ? AND {_DONE}"  # noqa: S608 - no input in it
_KNOWN = (
    "SELECT start, epoch, previous, announced FROM starts"  # noqa: S608 - fixed
    f" WHERE start < ? AND NOT ((announced OR start <= ?) AND {_DONE}) ORDER BY start"
)
"""All but those that are deleted with the next commit."""
_LAST = "UPDATE starts SET last = ? WHERE start = ?"
_ANNOUNCED = "UPDATE starts SET announced = 1 WHERE start = ?"


@dataclass(slots=True)
class Start:
    """One start: its number from 1, its epoch, and what was known of the one before.

    `previous` is {"epoch", "last": {stream: number}}, None for the first start. `last` are the
    numbers that the present start has given, which `Starts.save_last` writes.
    """

    start: int | None
    epoch: str
    previous: dict[str, Any] | None
    announced: bool = False
    acknowledged_by: set[str] = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)


class Starts:
    """Finds the start of each epoch; `present` is the one that runs."""

    def __init__(
        self, database: Database, writer: Writer, counters: Counters, start: int, epoch: str
    ) -> None:
        self.present = Start(start, epoch, None)
        self.listeners = 1
        """How many uplinks must announce a start."""
        self._database = database
        self._writer = writer
        self._counters = counters
        self._by_epoch: dict[str, Start] = {}

    async def begin(self) -> None:
        """Write the present start; forget those with nothing left to report."""
        present = self.present
        newest = await self._rows(_NEWEST, (present.start,))
        if newest:
            epoch, last = newest[0]
            present.previous = {"epoch": epoch, "last": json.loads(last)}
        text = None if present.previous is None else json.dumps(present.previous)
        number = present.start or 0
        oldest = number - MAX_STARTS
        forgotten = await self._rows(_OLD, (oldest,))
        self._counters.set("tidegate/ledger/starts_forgotten", forgotten[0][0])
        known_starts = await self._rows(_KNOWN, (number, oldest))
        self._writer.add(_FORGET_REPORTED, (number,))
        self._writer.add(_FORGET_OLD, (oldest,))
        self._writer.add(_INSERT, (number, present.epoch, text))
        self._writer.hand_over()
        for start, epoch, previous, announced in known_starts:
            known = None if previous is None else json.loads(previous)
            self._by_epoch[epoch] = Start(start, epoch, known, bool(announced))
        self._by_epoch[present.epoch] = present

    def of(self, epoch: str) -> Start:
        """Return the start that gave `epoch`, one without a number if it is no longer known."""
        return self._by_epoch.get(epoch) or Start(None, epoch, None)

    def last_of(self, epoch: str) -> dict[str, int]:
        """Return the last number of each stream that was on disk when a start had ended."""
        for start in self._by_epoch.values():
            if start.previous is not None and start.previous["epoch"] == epoch:
                last: dict[str, int] = start.previous["last"]
                return last
        return {}

    @property
    def previous_epoch(self) -> str:
        """The epoch of the start before, "" for the first start."""
        previous = self.present.previous
        return "" if previous is None else str(previous["epoch"])

    @property
    def unannounced(self) -> list[Start]:
        """The starts that the fleet has not received, oldest first."""
        return [start for start in self._by_epoch.values() if not start.announced]

    def save_last(self) -> int:
        """Write the last numbers that were given; return the batch."""
        text = json.dumps(self.present.last, separators=(",", ":"))
        return self._writer.add(_LAST, (text, self.present.start))

    def save_announced(self, start: Start, uplink: str = "") -> None:
        """Store that the fleet has received `start`, once every uplink has reported it."""
        start.acknowledged_by.add(uplink)
        if not start.announced and len(start.acknowledged_by) >= self.listeners:
            start.announced = True
            self._writer.add(_ANNOUNCED, (start.start,))
            self._writer.hand_over()

    async def _rows(self, statement: str, row: Row) -> list[Any]:
        query = self._database.writer.query
        return await query(statement, row, lambda cursor: cursor.fetchall())
