"""Which frames of the serial nodes were already accepted, so that a repeated one is dropped."""

from collections import OrderedDict

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

WINDOW = 64
"""Sequence numbers below the highest of which each is stored; older ones count as seen."""

MAX_NODES = 1_024
"""Nodes that are stored; the one that was silent the longest is evicted."""

BOOTS_OF_A_NODE = 4
"""Boots of a node that are stored; the least recently used one is evicted."""

_MASK = (1 << WINDOW) - 1

_NOTHING = (-1, 0)

_SAVE = (
    "INSERT INTO node_frames (node, boot, used, highest, seen) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET used = excluded.used, highest = excluded.highest,"
    " seen = excluded.seen"
)
_FORGET = "DELETE FROM node_frames WHERE node = ? AND boot = ?"
_ALL = "SELECT node, boot, used, highest, seen FROM node_frames ORDER BY used"


class NodeFrames:
    """The frames accepted from each node, by boot id and sequence number (both u32).

    A node counts its frames within a boot and has a new boot id after each start; it repeats a
    frame if the acknowledgement was lost. `remember` takes effect at once, and its row is in the
    batch that holds the frame's readings, which begins at most `commit_within` seconds later, None
    for the class `memory`.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._nodes: OrderedDict[str, OrderedDict[int, tuple[int, int]]] = OrderedDict()
        self._used = 0

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before the first frame."""
        rows = await self._database.reader.query(_ALL, (), lambda cursor: cursor.fetchall())
        for node, boot, used, highest, seen in rows:
            self._boots(node)[boot] = (highest, int.from_bytes(seen, "big"))
            self._used = used

    def seen(self, node: str, boot: int, sequence: int) -> bool:
        """Return whether the frame was accepted before, or is too old to decide."""
        boots = self._nodes.get(node)
        highest, bits = boots.get(boot, _NOTHING) if boots else _NOTHING
        distance = highest - sequence
        return distance >= 0 and (distance >= WINDOW or bool(bits >> distance & 1))

    def remember(
        self, node: str, boot: int, sequence: int, commit_within: float | None = 0.0
    ) -> None:
        """Note the frame as accepted and write its row."""
        boots = self._boots(node)
        highest, bits = boots.get(boot, _NOTHING)
        if sequence > highest:
            shift = min(sequence - highest, WINDOW)  # a jump leaves nothing of the window
            highest, bits = sequence, (bits << shift | 1) & _MASK
        elif highest - sequence < WINDOW:
            bits |= 1 << (highest - sequence)
        boots[boot] = (highest, bits)
        boots.move_to_end(boot)
        self._used += 1
        row = (node, boot, self._used, highest, bits.to_bytes(8, "big"))
        self._writer.add(_SAVE, row, commit_within)
        self._evict(boots, node, commit_within)

    def _boots(self, node: str) -> OrderedDict[int, tuple[int, int]]:
        boots = self._nodes.setdefault(node, OrderedDict())
        self._nodes.move_to_end(node)
        return boots

    def _evict(
        self, boots: OrderedDict[int, tuple[int, int]], node: str, commit_within: float | None
    ) -> None:
        if len(boots) > BOOTS_OF_A_NODE:
            boot, _ = boots.popitem(last=False)
            self._writer.add(_FORGET, (node, boot), commit_within)
        if len(self._nodes) > MAX_NODES:
            silent, forgotten = self._nodes.popitem(last=False)
            for boot in forgotten:
                self._writer.add(_FORGET, (silent, boot), commit_within)
