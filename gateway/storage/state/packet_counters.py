"""The last encryption counter of each advertising device, so that no older packet is accepted."""

from collections import OrderedDict

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

DEVICES_MAX = 2_048
"""Devices that are stored, each with one key; the one that was silent the longest is evicted."""

COMMIT_WITHIN = 60.0
"""Seconds after which a counter is committed if no reading was."""

_SAVE = (
    "INSERT INTO packet_counters (address, key, used, counter) VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET used = excluded.used, counter = excluded.counter"
)
_FORGET = "DELETE FROM packet_counters WHERE address = ? AND key = ?"
_ALL = "SELECT address, key, used, counter FROM packet_counters ORDER BY used"


class PacketCounters:
    """The last counter by a device's address and the hash of its key.

    `remember` takes effect at once, and its row is in the batch of the packet's readings, whose
    durability class decides when it is committed.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._counters: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._used = 0

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before the first packet."""
        rows = await self._database.reader.query(_ALL, (), lambda cursor: cursor.fetchall())
        for address, key, used, counter in rows:
            self._counters[address, key] = counter
            self._used = used

    def last(self, address: str, key: bytes) -> int:
        """Return the last counter, -1 without one."""
        return self._counters.get((address, key), -1)

    def remember(self, address: str, key: bytes, counter: int) -> None:
        """Note the counter of an accepted packet, and write its row."""
        name = (address, key)
        self._counters[name] = counter
        self._counters.move_to_end(name)
        self._used += 1
        self._writer.add(_SAVE, (address, key, self._used, counter), COMMIT_WITHIN)
        if len(self._counters) > DEVICES_MAX:
            silent, _ = self._counters.popitem(last=False)
            self._writer.add(_FORGET, silent, COMMIT_WITHIN)

    def forget(self, address: str) -> int:
        """Forget the counters of a device for all keys; return how many there were."""
        gone = [name for name in self._counters if name[0] == address]
        for name in gone:
            del self._counters[name]
            self._writer.add(_FORGET, name)
        return len(gone)
