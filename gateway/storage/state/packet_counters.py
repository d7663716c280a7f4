"""The last encryption counter of each device that advertises, so that no older packet is taken."""

from collections import OrderedDict

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

DEVICES_MAX = 2_048
"""Devices remembered, each with one key; the one that was silent the longest is forgotten."""

COMMIT_WITHIN = 60.0
"""Seconds after which a counter is committed that no reading has taken along."""

_SAVE = (
    "INSERT INTO packet_counters (address, key, used, counter) VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET used = excluded.used, counter = excluded.counter"
)
_FORGET = "DELETE FROM packet_counters WHERE address = ? AND key = ?"
_ALL = "SELECT address, key, used, counter FROM packet_counters ORDER BY used"


class PacketCounters:
    """The last counter by a device's address and the hash of its key.

    `remember` is in force at once, and its row goes to disk in the batch of the packet's readings,
    whose durability class says when.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._counters: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._used = 0

    async def load(self) -> None:
        """Learn what an earlier run left; call it once, before the first packet."""
        rows = await self._database.reader.query(_ALL, (), lambda cursor: cursor.fetchall())
        for address, key, used, counter in rows:
            self._counters[address, key] = counter
            self._used = used

    def last(self, address: str, key: bytes) -> int:
        """Return the counter that was remembered last, -1 for none."""
        return self._counters.get((address, key), -1)

    def remember(self, address: str, key: bytes, counter: int) -> None:
        """Note the counter of a packet that was taken, and gather its row."""
        name = (address, key)
        self._counters[name] = counter
        self._counters.move_to_end(name)
        self._used += 1
        self._writer.add(_SAVE, (address, key, self._used, counter), COMMIT_WITHIN)
        if len(self._counters) > DEVICES_MAX:
            silent, _ = self._counters.popitem(last=False)
            self._writer.add(_FORGET, silent, COMMIT_WITHIN)

    def forget(self, address: str) -> int:
        """Forget the counters of a device under all keys; return how many there were."""
        gone = [name for name in self._counters if name[0] == address]
        for name in gone:
            del self._counters[name]
            self._writer.add(_FORGET, name)
        return len(gone)
