"""Sessions, retained messages and wills on disk."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gateway.app.clock_stamp import ClockStamp
from gateway.app.parts import Run, Storage
from gateway.broker.store import Store, StoresNothing
from gateway.server.turn import Turn
from gateway.session.restored import Restored
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.reading import Reading
from gateway.storage.sessions.broker_store import BrokerStore
from gateway.storage.sessions.pager import Pager
from gateway.storage.sessions.restore import Restore

RETRY_SECONDS = 1.0
"""Seconds between two attempts to read a queue after a disk error."""


class StoreTime:
    """The time of a read from the store: at the start, or in the turn."""

    def __init__(self, stamp: ClockStamp) -> None:
        self._stamp = stamp
        self._turn: Turn | None = None
        self._store: BrokerStore | None = None

    def follow(self, turn: Turn, store: Store) -> None:
        """Return the time of this turn from now on."""
        self._turn = turn
        self._store = store if isinstance(store, BrokerStore) else None

    def __call__(self) -> tuple[float, int]:
        """Return monotonic seconds and the wall time in ms."""
        if self._turn is None:
            return self._stamp.at_start()
        instant = self._turn.instant
        # what is read may be from before the clock was set
        lag = 0 if self._store is None else self._store.lag
        return instant.monotonic, instant.wall - lag


async def open_store(
    run: Run, storage: Storage, now: StoreTime, *, durable: bool
) -> tuple[Store, Restored]:
    """Return the broker's store and the state of an earlier run.

    Without durability nothing is read or written: what is on disk stays for a durable run.
    """
    if not durable:
        return StoresNothing(), Restored()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def spawn(step: Coroutine[Any, Any, None]) -> None:
        task = loop.create_task(step)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def stop() -> None:
        for task in tasks:
            task.cancel()

    pager = Pager(
        Reading(storage.database.reader, run.counters),
        PendingBatch(storage.writer),
        now,
        spawn,
        lambda call: loop.call_later(RETRY_SECONDS, call),
    )
    run.stack.callback(stop)
    store, found = await Restore(pager, run.configuration.broker.maximum_inflight).run()
    storage.writer.before_batch.append(store.add_rows)
    storage.writer.on_committed.append(store.committed)
    return store, found
