"""One stream of the outbox in memory: its sums, its oldest rows, the newest of each topic."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from gateway.storage.outbox.lane import RECALL
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.streams.retention import Mode, StreamSettings

HEAD_ROWS = 1_024
"""Rows known in memory, without their payloads, that would be the next to make room."""

MAX_LATEST_TOPICS = 10_000
"""Topics of which the newest row is known; of one that was forgotten the older row stays too."""

IsTaken = Callable[[int], bool]
"""Whether the row of an id is on its way to the fleet: then it is not given up."""


class OutboxStream:
    """What waits of one stream.

    `head` are its oldest rows, as `summary` gives them, by rising id: all of the stream that
    wait and have an id up to `known_to`. It is kept only where a row may be given up, and rows of
    the lane `recall`, which are few and were asked for, are never among them.
    """

    __slots__ = (
        "_drops",
        "bytes",
        "bytes_name",
        "has_head",
        "head",
        "known_to",
        "last_id",
        "latest",
        "rows",
        "rows_name",
        "settings",
    )

    def __init__(self, settings: StreamSettings, *, has_head: bool, drops: bool) -> None:
        self.settings = settings
        self.rows_name = f"tidegate/outbox/stream/{settings.name}/rows"
        self.bytes_name = f"tidegate/outbox/stream/{settings.name}/bytes"
        self.rows = 0
        self.bytes = 0
        self.last_id = 0
        self.has_head = has_head or settings.retention.needs_oldest
        self._drops = drops or settings.retention.drops
        self.known_to = 0
        self.head: OrderedDict[int, OutboxRow] = OrderedDict()
        self.latest: OrderedDict[str, OutboxRow] | None = None
        if settings.mode is Mode.LATEST:
            self.latest = OrderedDict()

    @property
    def may_give_up(self) -> bool:
        """Whether a row, or a new one itself, may be given up where this stream gets a new one."""
        return self._drops or self.latest is not None

    @property
    def knows_all(self) -> bool:
        """Whether `head` is the whole stream."""
        return self.known_to >= self.last_id

    @property
    def wants_more(self) -> bool:
        """Whether `head` should be read on from `known_to`."""
        return self.has_head and not self.knows_all and len(self.head) < HEAD_ROWS // 2

    def over(self, rows: int = 0, size: int = 0) -> bool:
        """Return whether the stream is beyond its own bounds with so much more."""
        return self.settings.retention.over(self.rows + rows, self.bytes + size)

    def oldest(self, is_taken: IsTaken) -> OutboxRow | None:
        """Return the known row with the lowest id that is not taken, None if there is none."""
        return next((row for row in self.head.values() if not is_taken(row.id)), None)

    def added(self, row: OutboxRow) -> bool:
        """Take in a new row; return False if another topic's newest row was forgotten for it."""
        knew_all = self.knows_all or not self.rows
        self.rows += 1
        self.bytes += row.size
        self.last_id = row.id
        if not self.has_head and self.latest is None:
            return True
        row = summary(row)
        if self.has_head and knew_all and len(self.head) < HEAD_ROWS:
            self.read_on([row], row.id)
        return self._newest(row)

    def removed(self, row: OutboxRow) -> None:
        """Take in that a row has left."""
        self.rows -= 1
        self.bytes -= row.size
        self.head.pop(row.id, None)
        if self.latest is not None:
            newest = self.latest.get(row.topic)
            if newest is not None and newest.id == row.id:
                del self.latest[row.topic]

    def changed(self, row: OutboxRow) -> None:
        """Note that fewer uplinks wait for a row."""
        latest = None if self.latest is None else self.latest.get(row.topic)
        for known in (self.head.get(row.id), latest):
            if known is not None and known.id == row.id:
                known.uplinks = row.uplinks

    def read_on(self, rows: Iterable[OutboxRow], known_to: int) -> None:
        """Take in the rows that follow those of `head`, up to the id `known_to`."""
        for row in rows:
            if row.id > self.known_to and row.lane != RECALL:
                self.head[row.id] = row
        self.known_to = max(self.known_to, known_to)

    def restore_latest(self, rows: Iterable[OutboxRow]) -> None:
        """Take in the rows that an earlier run left, the newest first."""
        if self.latest is not None:
            for row in rows:
                if row.topic not in self.latest and len(self.latest) < MAX_LATEST_TOPICS:
                    self.latest[row.topic] = row
                    self.latest.move_to_end(row.topic, last=False)

    def _newest(self, row: OutboxRow) -> bool:
        if self.latest is None or row.lane == RECALL:
            return True
        self.latest[row.topic] = row
        self.latest.move_to_end(row.topic)
        if len(self.latest) <= MAX_LATEST_TOPICS:
            return True
        self.latest.popitem(last=False)
        return False


def summary(row: OutboxRow) -> OutboxRow:
    """Return the row without what the publisher put into the message."""
    return OutboxRow(
        epoch=row.epoch,
        stream=row.stream,
        seq=row.seq,
        lane=row.lane,
        time=row.time,
        topic=row.topic,
        payload=b"",
        identifier=row.id,
        size=row.size,
        uplinks=row.uplinks,
    )
