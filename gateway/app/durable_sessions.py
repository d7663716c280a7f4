"""Sessions, retained messages and wills on disk."""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from gateway.broker.store import KeepsNothing, Store
from gateway.session.kept import Kept
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.reading import Reading
from gateway.storage.sessions.pager import Pager
from gateway.storage.sessions.restore import Restore

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

RETRY_SECONDS = 1.0
"""Seconds between two attempts to read a queue after a disk error."""


async def open_store(gateway: "Gateway", *, durable: bool) -> tuple[Store, Kept]:
    """Return the broker's store and what an earlier run left in it.

    Without durability nothing is read and nothing is written: what is on disk stays for a run
    that keeps its promises.
    """
    if not durable:
        return KeepsNothing(), Kept()

    def now() -> tuple[float, int]:
        if not hasattr(gateway, "turn"):
            return gateway.clock_stamp.at_start()
        monotonic, wall = gateway.turn.instant
        return monotonic, wall - store.lag  # what is read may be of before the clock was set

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
        Reading(gateway.database.reader, gateway.counters),
        PendingBatch(gateway.writer),
        now,
        spawn,
        lambda call: loop.call_later(RETRY_SECONDS, call),
    )
    gateway.stack.callback(stop)
    store, kept = await Restore(pager, gateway.configuration.broker.maximum_inflight).run()
    gateway.writer.before_batch.append(store.gather)
    gateway.writer.on_committed.append(store.committed)
    return store, kept
