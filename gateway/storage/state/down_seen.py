"""The fleet's messages that were accepted, until it has surely read their acknowledgement."""

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

REMEMBERED = 100
"""Messages that are stored: the fleet may have as many unacknowledged (Receive Maximum)."""

PREFIX = "down/"
"""The beginning of their names in `meta`; the packet identifier follows."""

_SAVE = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_FORGET = "DELETE FROM meta WHERE name = ?"
_ALL = "SELECT name, value FROM meta WHERE name GLOB ?"


class DownSeen:
    """The packet identifiers of the last messages, each with a hash of its message.

    Each of several uplinks has its own. `remember` takes effect at once, and its row is in the
    batch with what the message caused here.
    """

    def __init__(self, database: Database, writer: Writer, uplink: str = "") -> None:
        self._prefix = f"{PREFIX}{uplink}/" if uplink else PREFIX
        self._database = database
        self._writer = writer
        self._hashes: dict[int, int] = {}

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before the first message."""
        which = (f"{self._prefix}[0-9]*",)
        rows = await self._database.reader.query(_ALL, which, lambda cursor: cursor.fetchall())
        names = {name.removeprefix(self._prefix): value for name, value in rows}
        self._hashes = {int(name): value for name, value in names.items() if name.isdecimal()}

    def rename(self, uplink: str) -> None:
        """Store the same under the uplink's present name."""
        hashes, self._hashes = self._hashes, {}
        for packet_id in hashes:
            self._writer.add(_FORGET, (f"{self._prefix}{packet_id}",))
        self._prefix = f"{PREFIX}{uplink}/" if uplink else PREFIX
        for packet_id, value in hashes.items():
            self.remember(packet_id, value)

    def has(self, packet_id: int, value: int) -> bool:
        """Return whether a message with this hash was accepted with this packet identifier."""
        return self._hashes.get(packet_id) == value

    def remember(self, packet_id: int, value: int) -> None:
        """Note a message as accepted, and forget the oldest of REMEMBERED."""
        self._hashes.pop(packet_id, None)
        self._hashes[packet_id] = value
        self._writer.add(_SAVE, (f"{self._prefix}{packet_id}", value))
        if len(self._hashes) > REMEMBERED:
            oldest = next(iter(self._hashes))
            del self._hashes[oldest]
            self._writer.add(_FORGET, (f"{self._prefix}{oldest}",))
