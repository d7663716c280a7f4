"""Sessions, retained messages and wills on disk."""

from typing import TYPE_CHECKING

from gateway.broker.store import KeepsNothing, Store
from gateway.session.kept import Kept
from gateway.storage.gathering import Gathering
from gateway.storage.reading import Reading
from gateway.storage.restore import Restore

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def open_store(gateway: "Gateway", *, durable: bool) -> tuple[Store, Kept]:
    """Return the broker's store and what an earlier run left in it.

    Without durability nothing is read and nothing is written: what is on disk stays for a run
    that keeps its promises.
    """
    if not durable:
        return KeepsNothing(), Kept()
    reading = Reading(gateway.database.reader, gateway.counters)
    now = gateway.clock.monotonic(), gateway.clock.wall_ms()
    store, kept = await Restore(reading, Gathering(gateway.writer), *now).run()
    gateway.writer.before_batch.append(store.gather)
    gateway.writer.on_committed.append(store.committed)
    return store, kept
