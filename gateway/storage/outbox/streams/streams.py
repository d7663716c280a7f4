"""The streams of the outbox together: their sums, whom it refuses, and who makes room."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gateway.config.when_full import WhenFull
from gateway.storage.outbox.lane import RECALL
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.streams.retention import (
    OutboxSettings,
    Retention,
    StreamSettings,
    for_rows,
)
from gateway.storage.outbox.streams.stream import IsTaken, OutboxStream

SMALL_ROW = 1_024
"""Bytes of the file that a small message takes."""


class Leaves(NamedTuple):
    """A row that makes room, and the policy that chose it."""

    row: OutboxRow
    policy: WhenFull


class OutboxStreams:
    """All streams by name; `rows` and `bytes` are their sums.

    `is_taken` says of a row's id that nobody knows whether the fleet has it: such a row is not
    given up. `log_excess` are the bytes that the write-ahead log takes beyond its share: they
    count where the arriving message is what goes, since giving others up would only make it longer.
    """

    __slots__ = ("_is_taken", "_streams", "bytes", "log_excess", "retention", "rows")

    def __init__(self, settings: OutboxSettings, is_taken: IsTaken) -> None:
        whole = settings.retention
        self.retention = Retention(
            None if whole.maximum_bytes is None else for_rows(whole.maximum_bytes),
            whole.maximum_messages,
            whole.maximum_age,
            whole.when_full,
        )
        self.rows = 0
        self.bytes = 0
        self.log_excess = 0
        self._is_taken = is_taken
        self._streams = {each.name: self._stream(each) for each in settings.streams}

    def __iter__(self) -> Iterator[OutboxStream]:
        return iter(self._streams.values())

    def __len__(self) -> int:
        return len(self._streams)

    def of(self, name: str) -> OutboxStream:
        """Return the stream of this name; one that nobody configured has the defaults."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = self._stream(StreamSettings(name))
        return stream

    def by_priority(self) -> list[list[str | None]]:
        """Return the names by falling priority, those of the same together.

        None stands for all of them where all have the same.
        """
        streams: dict[int, list[str | None]] = {}
        for stream in self:
            streams.setdefault(stream.settings.priority, []).append(stream.settings.name)
        if len(streams) < 2:
            return [[None]]
        return [streams[priority] for priority in sorted(streams, reverse=True)]

    def over(self, rows: int = 0, size: int = 0) -> bool:
        """Return whether the whole is beyond its bounds with so much more."""
        return self.retention.over(self.rows + rows, self.bytes + size)

    def refuses(self, rows: Sequence[OutboxRow]) -> bool:
        """Return whether there is no room for one of `rows`, and none may be made."""
        count, size = 0, 0
        for row in rows:
            stream = self.of(row.stream)
            older = self.replaced(row)
            more, larger = (1, row.size) if older is None else (0, row.size - older.size)
            if stream.settings.retention.when_full is WhenFull.REJECT and stream.over(more, larger):
                return True
            count += more
            size += larger
        if self.retention.when_full is not WhenFull.REJECT:
            return False
        return self.over(count, size + self.log_excess)

    def fits(self, row: OutboxRow) -> bool:
        """Return whether there is room for `row` without anybody leaving for it."""
        if self.of(row.stream).over(1, row.size):
            return False
        return not self.over(1, row.size + self.log_excess)

    @property
    def have_room(self) -> bool:
        """Whether the whole and each stream have room for a row of SMALL_ROW bytes."""
        if self.over(1, SMALL_ROW + self.log_excess):
            return False
        return not any(stream.over(1, SMALL_ROW) for stream in self)

    def replaced(self, row: OutboxRow) -> OutboxRow | None:
        """Return the row that need not wait any more when `row` does: an older one of its topic."""
        latest = self.of(row.stream).latest
        older = None if latest is None or row.lane == RECALL else latest.get(row.topic)
        return None if older is None or self._is_taken(older.id) else older

    def next_to_go(self, row: OutboxRow | None = None) -> Leaves | None:
        """Return who makes room for `row`, perhaps itself, or for what there is already.

        None when there is room, when none may be made, or when it is not known yet whose turn
        it is: then there is more than the bounds allow until the oldest rows have been read.
        """
        if row is None:
            return self._over_a_stream() or self._of_all(None)
        return self._of_stream(self.of(row.stream), row) or self._of_all(row)

    def too_old(self, now_for: Callable[[OutboxRow], int]) -> OutboxRow | None:
        """Return a known row that has waited for longer than it may; `now_for` it is (ms)."""
        ages = [self.retention.maximum_age]
        for stream in self._streams.values():
            own = stream.settings.retention.maximum_age
            bounds = [age for age in (*ages, own) if age is not None]
            oldest = stream.oldest(self._is_taken) if bounds else None
            if oldest is not None and oldest.time <= now_for(oldest) - 1000 * min(bounds):
                return oldest
        return None

    def added(self, row: OutboxRow) -> bool:
        """Take in a new row; False if the newest row of another topic was forgotten for it."""
        self.rows += 1
        self.bytes += row.size
        return self.of(row.stream).added(row)

    def removed(self, rows: Sequence[OutboxRow]) -> None:
        """Take in that rows have left."""
        self.rows -= len(rows)
        for row in rows:
            self.bytes -= row.size
            self.of(row.stream).removed(row)

    def _stream(self, settings: StreamSettings) -> OutboxStream:
        retention = self.retention
        return OutboxStream(settings, has_head=retention.needs_oldest, drops=retention.drops)

    def _over_a_stream(self) -> Leaves | None:
        for stream in self._streams.values():
            if (leaves := self._of_stream(stream, None)) is not None:
                return leaves
        return None

    def _of_stream(self, stream: OutboxStream, row: OutboxRow | None) -> Leaves | None:
        retention = stream.settings.retention
        rows, size = _more(row)
        if not stream.over(rows, size):
            return None
        if row is not None and _drops_itself(retention, row):
            return Leaves(row, retention.when_full)
        if retention.when_full is not WhenFull.DROP_OLDEST:
            return None
        oldest = stream.oldest(self._is_taken)
        if row is None and oldest is not None and oldest.id == stream.last_id:
            return None  # it was taken in beside rows that are on their way: these make no room
        return _leaves(oldest, WhenFull.DROP_OLDEST)

    def _of_all(self, row: OutboxRow | None) -> Leaves | None:
        policy = self.retention.when_full
        rows, size = _more(row)
        if policy is WhenFull.DROP_NEWEST:
            size += self.log_excess
        if policy is WhenFull.REJECT or not self.over(rows, size):
            return None
        if row is not None and _drops_itself(self.retention, row):
            return Leaves(row, policy)
        if policy is WhenFull.DROP_NEWEST:
            return None
        streams = [stream for stream in self._streams.values() if stream.rows]
        if policy is WhenFull.DROP_LOWEST_PRIORITY and streams:
            lowest = min(stream.settings.priority for stream in streams)
            if row is not None and self.of(row.stream).settings.priority < lowest:
                return Leaves(row, policy)
            streams = [stream for stream in streams if stream.settings.priority == lowest]
        oldest = self._oldest_of(streams)
        if row is None and oldest is not None and oldest.id == self._last_id:
            return None  # as for a stream
        return _leaves(oldest, policy)

    @property
    def _last_id(self) -> int:
        return max(stream.last_id for stream in self._streams.values())

    def _oldest_of(self, streams: Sequence[OutboxStream]) -> OutboxRow | None:
        if any(not stream.head and not stream.knows_all for stream in streams):
            return None  # its oldest may be older than those that are known
        known = (stream.oldest(self._is_taken) for stream in streams)
        return min((row for row in known if row is not None), key=_by_id, default=None)


def _more(row: OutboxRow | None) -> tuple[int, int]:
    return (0, 0) if row is None else (1, row.size)


def _drops_itself(retention: Retention, row: OutboxRow) -> bool:
    """Whether the arriving row goes: by the policy, or since it alone is too much."""
    if retention.when_full is WhenFull.REJECT:
        return False
    return retention.when_full is WhenFull.DROP_NEWEST or retention.over(1, row.size)


def _leaves(row: OutboxRow | None, policy: WhenFull) -> Leaves | None:
    return None if row is None else Leaves(row, policy)


def _by_id(row: OutboxRow) -> int:
    return row.id
