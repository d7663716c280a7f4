"""A disk for stores: SQLite in memory, and a crash that forgets what was not committed."""

import asyncio
import contextlib
import functools
import math
import sqlite3
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gateway.counters import Counters
from gateway.mqtt.output import Pending
from gateway.session.restored import Restored
from gateway.storage.engine.connection import Row
from gateway.storage.engine.migrations.migrate import migrate
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.reading import Reading
from gateway.storage.engine.wake_up import WakeUp
from gateway.storage.sessions.broker_store import BrokerStore
from gateway.storage.sessions.pager import Pager
from gateway.storage.sessions.restore import Restore

T = TypeVar("T")


@functools.cache
def _new_database() -> bytes:
    """Return a database at the newest schema: to copy it takes a tenth of what migrations take."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        return connection.serialize()


class SqliteDisk:
    """Has the shape of the storage layer's writer and of its connection; `commit` writes."""

    def __init__(self) -> None:
        # it is closed, since Python 3.13 warns of open ones, in whichever thread collects garbage
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self.connection.close)
        self.connection.deserialize(_new_database())
        self.full = False
        self.durable = True
        self.commit_delay = 0.005
        self.begin()

    def begin(self) -> None:
        """Start anew on what was committed."""
        self.pending = Pending()
        self.pending_rows = 0
        self.elided_rows = 0
        self.batch = 1
        self.committed = 0
        self.wanted: float | None = None
        self.wake_up = WakeUp()
        self.before_batch: list[Callable[[], None]] = []
        self.on_committed: list[Callable[[int], None]] = []
        self.rows: list[tuple[str, Row]] = []
        self.closed: list[tuple[str, Row]] | None = None  # a batch that is being written
        self.steps: list[Coroutine[Any, Any, None]] = []
        self.retries: list[Callable[[], None]] = []
        self.time = (0.0, 0)

    def add(self, statement: str, row: Row) -> int:
        self.rows.append((statement, row))
        self.pending.changes += 1
        self.pending_rows += 1
        return self.batch

    def add_rows(self, statement: str, rows: list[Row], size: int) -> None:
        texts = [each for row in rows for each in row if isinstance(each, bytes | str)]
        assert size == sum(map(len, texts))
        for row in rows:
            self.add(statement, row)

    def accepts(self, size: int) -> bool:
        return not self.full

    def gather(self) -> None:
        """Have something to write that is no row of ours."""
        self.pending.changes += 1
        self.pending_rows += 1
        self.schedule_commit(0.0)

    def schedule_commit(self, within: float) -> None:
        self.wanted = within if self.wanted is None else min(within, self.wanted)

    def hand_over(self) -> None:
        """Leave it to whoever calls `commit`."""

    def commit_number(self) -> int:
        if not self.durable:
            return 0
        if self.wanted is not None or self.rows:
            return self.batch
        return 0 if self.closed is None else self.batch - 1

    def due(self) -> bool:
        """Return whether there is anything to commit, deferred writes among it, given time."""
        if self.wake_up.at < math.inf:
            self.wake_up.ring()
        return self.commit_number() > 0

    def close_batch(self) -> None:
        """Begin to write what was gathered: what comes now goes with the next batch."""
        for gather in self.before_batch:
            gather()
        self.closed, self.rows = self.rows, []
        self.pending_rows = 0
        self.wanted = None
        self.batch += 1

    def commit(self) -> int:
        """Write what was gathered, or the batch that was closed; return how many rows."""
        if self.closed is None:
            self.close_batch()
        rows, self.closed = self.closed or [], None
        self.connection.execute("BEGIN")
        for statement, row in rows:
            self.connection.execute(statement, row)
        self.connection.execute("COMMIT")
        self.committed = self.batch - 1
        for callback in self.on_committed:
            callback(self.committed)
        return len(rows)

    async def query(self, statement: str, row: Row, take: Callable[[sqlite3.Cursor], T]) -> T:
        return take(self.connection.execute(statement, row))

    def spawn(self, step: Coroutine[Any, Any, None]) -> None:
        """Have a step to do: `run_steps` does it."""
        self.steps.append(step)

    def now(self) -> tuple[float, int]:
        """Return monotonic seconds and wall milliseconds."""
        return self.time

    def run_steps(self) -> None:
        """Read and delete what was asked for, as far as that needs no commit."""
        while self.steps:
            asyncio.run(self.steps.pop(0))

    def count(self, table: str) -> int:
        (count,) = self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(count)

    def restore(
        self, monotonic: float, wall: int, counters: Counters | None = None
    ) -> tuple[BrokerStore, Restored]:
        """Return the store after a crash, and what it still has."""
        self.begin()
        reading = Reading(self, counters or Counters())  # type: ignore[arg-type]  # by shape
        self.time = (monotonic, wall)
        self.reading = reading
        pending = PendingBatch(self)
        pager = Pager(reading, pending, self.now, self.spawn, self.retries.append)
        store, kept = asyncio.run(Restore(pager).run())
        self.run_steps()
        self.before_batch.append(store.add_rows)
        self.on_committed.append(store.committed)
        return store, kept
