"""The bounds of the outbox: its streams, their totals, and the choice of rows to evict."""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gateway.settings.outbox import Mode
from gateway.settings.when_full import WhenFull
from gateway.storage.engine.database import Database
from gateway.storage.engine.files import known_log_bytes, log_of
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.row import RECALL, OutboxRow, summary_of

DEFAULT_PRIORITY = 5
"""The priority of a stream without its own, in the middle of 1 (lowest) to 10."""

DEFAULT_MAXIMUM_BYTES = 1024 * 1024 * 1024
"""Bytes of the outbox in the file, its share of the write-ahead log included."""

LOG_SHARE = 16 * 1024 * 1024
"""Bytes of that bound that are reserved for the write-ahead log, a quarter of it if that is
less."""

HEAD_ROWS = 1_024
"""Rows known in memory, without payloads, that would be evicted next."""

MAX_LATEST_TOPICS = 10_000
"""Topics whose newest row is known; of an evicted topic the older row stays, too."""

SMALL_ROW = 1_024
"""Bytes of the file that a small message takes."""

SCAN_ROWS = 10_000
"""The most rows that a start counts one by one; totals are on disk only above that."""

NO_BOUND = 2**62

_SUMS = "SELECT stream, rows, bytes, up_to FROM outbox_totals"
# "+stream": by id, from up_to on, and not with the index of all rows.
_COUNT = (
    "SELECT stream, count(*), CAST(total(size) AS INTEGER) FROM outbox"
    " WHERE id > ? GROUP BY +stream"
)
_LAST = "SELECT coalesce(max(id), 0) FROM outbox"
_SET = (
    "INSERT INTO outbox_totals (stream, rows, bytes, up_to) VALUES (?, ?, ?, ?) ON CONFLICT"
    " DO UPDATE SET rows = excluded.rows, bytes = excluded.bytes, up_to = excluded.up_to"
)
_CLEAR = "DELETE FROM outbox_totals"

IsClaimed = Callable[[int], bool]
"""Whether the row of an id is being sent to the fleet: then it is not evicted."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Bounds in bytes (`row_size`), messages and seconds of age; None is no bound."""

    maximum_bytes: int | None = None
    maximum_messages: int | None = None
    maximum_age: int | None = None
    when_full: WhenFull = WhenFull.REJECT

    @property
    def needs_oldest(self) -> bool:
        """Whether waiting messages may be evicted, for others or for their age."""
        drops = self.when_full not in (WhenFull.REJECT, WhenFull.DROP_NEWEST)
        return drops or self.maximum_age is not None

    @property
    def drops(self) -> bool:
        """Whether acknowledged messages may be evicted, including a new one."""
        return self.when_full is not WhenFull.REJECT or self.maximum_age is not None

    def over(self, rows: int, size: int) -> bool:
        """Return whether this many rows and bytes exceed the bounds."""
        return (self.maximum_messages is not None and rows > self.maximum_messages) or (
            self.maximum_bytes is not None and size > self.maximum_bytes
        )

    def drops_itself(self, row: OutboxRow) -> bool:
        """Return whether a new row itself is dropped: by policy, or as too large."""
        if self.when_full is WhenFull.REJECT:
            return False
        return self.when_full is WhenFull.DROP_NEWEST or self.over(1, row.size)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """One stream of the outbox; `expire_after` is in seconds and belongs to EXPIRE."""

    name: str
    priority: int = DEFAULT_PRIORITY
    retention: Retention = Retention()
    mode: Mode = Mode.ALL
    expire_after: int = 0


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """The bounds of the whole outbox and its streams; a missing one has the defaults."""

    retention: Retention = Retention(maximum_bytes=DEFAULT_MAXIMUM_BYTES)
    streams: tuple[StreamSettings, ...] = field(default=())


def for_rows(maximum_bytes: int) -> int:
    """Return the bytes that remain for rows of a bound that covers the log as well."""
    return maximum_bytes - min(LOG_SHARE, maximum_bytes // 4)


def log_excess(database: Path) -> int:
    """Return the bytes by which the write-ahead log of `database` exceeds LOG_SHARE."""
    return max(0, known_log_bytes(log_of(database)) - LOG_SHARE)


class Eviction(NamedTuple):
    """A row that is evicted for others, and the policy that chose it."""

    row: OutboxRow
    policy: WhenFull


class OutboxStream:
    """The waiting rows of one stream.

    `head` are its oldest rows, as `summary_of` returns them, by rising id: all waiting rows of the
    stream with an id up to `known_to`. It is filled only if a row may be evicted; rows of the lane
    `recall`, which are few and were requested, are never in it. `latest` has the newest row of each
    topic, if only that waits. `gives_up` says whether a row, or a new one itself, may be evicted
    when this stream gets a new one.
    """

    __slots__ = (
        "bytes",
        "bytes_name",
        "gives_up",
        "has_head",
        "head",
        "known_to",
        "last_id",
        "latest",
        "maximum_bytes",
        "maximum_rows",
        "rejects",
        "rows",
        "rows_name",
        "settings",
    )

    def __init__(self, settings: StreamSettings, *, has_head: bool, drops: bool) -> None:
        self.rows_name = f"tidegate/outbox/stream/{settings.name}/rows"
        self.bytes_name = f"tidegate/outbox/stream/{settings.name}/bytes"
        self.rows = 0
        self.bytes = 0
        self.last_id = 0
        self.known_to = 0
        self.head: OrderedDict[int, OutboxRow] = OrderedDict()
        self.latest: OrderedDict[str, OutboxRow] | None = None
        self.change(settings, has_head=has_head, drops=drops)

    def change(self, settings: StreamSettings, *, has_head: bool, drops: bool) -> None:
        """Apply these bounds from now on; existing rows are not known by topic yet."""
        retention = settings.retention
        self.settings = settings
        self.maximum_rows, self.maximum_bytes = _maxima(retention)
        has_bounds = (self.maximum_rows, self.maximum_bytes) != (NO_BOUND, NO_BOUND)
        self.rejects = has_bounds and retention.when_full is WhenFull.REJECT
        self.has_head = has_head or retention.needs_oldest
        if not self.has_head:
            self.head.clear()
            self.known_to = 0
        if settings.mode is not Mode.LATEST:
            self.latest = None
        elif self.latest is None:
            self.latest = OrderedDict()
        self.gives_up = drops or retention.drops or self.latest is not None

    @property
    def knows_all(self) -> bool:
        """Whether `head` is the whole stream."""
        return self.known_to >= self.last_id

    @property
    def wants_more(self) -> bool:
        """Whether more rows should be read into `head`, from `known_to` on."""
        return self.has_head and not self.knows_all and len(self.head) < HEAD_ROWS // 2

    def over(self, rows: int = 0, size: int = 0) -> bool:
        """Return whether the stream would exceed its own bounds with this much more."""
        return self.rows + rows > self.maximum_rows or self.bytes + size > self.maximum_bytes

    def oldest(self, is_claimed: IsClaimed) -> OutboxRow | None:
        """Return the known row with the lowest id that is not claimed, None without one."""
        return next((row for row in self.head.values() if not is_claimed(row.id)), None)

    def track(self, row: OutboxRow, *, knew_all: bool) -> bool:
        """Add a new row to the oldest or newest ones, if the settings need it.

        Returns False if another topic's newest row was forgotten for it.
        """
        # without the payload: up to HEAD_ROWS of each stream are in memory
        row = summary_of(row)
        # only directly after the known rows: with a gap the oldest row would be unknown
        if self.has_head and knew_all and len(self.head) < HEAD_ROWS:
            self.read_on([row], row.id)
        if self.latest is None or row.lane == RECALL:
            return True
        self.latest[row.message.topic] = row
        self.latest.move_to_end(row.message.topic)
        if len(self.latest) <= MAX_LATEST_TOPICS:
            return True
        self.latest.popitem(last=False)
        return False

    def forget(self, row: OutboxRow) -> None:
        """Forget a deleted row."""
        self.head.pop(row.id, None)
        if self.latest is not None:
            newest = self.latest.get(row.message.topic)
            if newest is not None and newest.id == row.id:
                del self.latest[row.message.topic]

    def changed(self, row: OutboxRow) -> None:
        """Note that fewer uplinks wait for a row."""
        latest = None if self.latest is None else self.latest.get(row.message.topic)
        for known in (self.head.get(row.id), latest):
            if known is not None and known.id == row.id:
                known.uplinks = row.uplinks

    def read_on(self, rows: Iterable[OutboxRow], known_to: int) -> None:
        """Append the rows that follow those of `head`, up to the id `known_to`."""
        for row in rows:
            if row.id > self.known_to and row.lane != RECALL:
                self.head[row.id] = row
        self.known_to = max(self.known_to, known_to)

    def restore_latest(self, rows: Iterable[OutboxRow]) -> None:
        """Add the rows of an earlier run, the newest first."""
        if self.latest is not None:
            for row in rows:
                if row.message.topic not in self.latest and len(self.latest) < MAX_LATEST_TOPICS:
                    self.latest[row.message.topic] = row
                    self.latest.move_to_end(row.message.topic, last=False)


class OutboxBounds:
    """All `streams` by name; `rows` and `bytes` are their totals, `last_id` the newest id.

    `is_claimed` returns for a row's id whether the fleet may already have it: such a row is not
    evicted. `log_excess` are the bytes by which the write-ahead log exceeds its share. They count
    if the new message would be dropped, since evicting others would only make the log longer.
    `rejects` means that a row may be refused for a bound, of the whole outbox or of a stream, and
    `has_removed` that the present batch removes rows.
    """

    __slots__ = (
        "_is_claimed",
        "_rejects",
        "bytes",
        "has_removed",
        "last_id",
        "log_excess",
        "maximum_bytes",
        "maximum_rows",
        "rejects",
        "retention",
        "rows",
        "streams",
    )

    def __init__(self, settings: OutboxSettings, is_claimed: IsClaimed) -> None:
        self.rows = 0
        self.bytes = 0
        self.last_id = 0
        self.log_excess = 0
        self.has_removed = False
        self._is_claimed = is_claimed
        self.streams: dict[str, OutboxStream] = {}
        self.change(settings)

    def change(self, settings: OutboxSettings) -> None:
        """Apply these bounds from now on; a stream that is not named has the defaults."""
        whole = settings.retention
        self.retention = Retention(
            None if whole.maximum_bytes is None else for_rows(whole.maximum_bytes),
            whole.maximum_messages,
            whole.maximum_age,
            whole.when_full,
        )
        self.maximum_rows, self.maximum_bytes = _maxima(self.retention)
        self._rejects = whole.when_full is WhenFull.REJECT
        named = {name: StreamSettings(name) for name in self.streams}
        named |= {each.name: each for each in settings.streams}
        for name, each in named.items():
            stream = self.streams.get(name)
            if stream is None:
                self.streams[name] = self._stream(each)
            else:
                stream.change(
                    each, has_head=self.retention.needs_oldest, drops=self.retention.drops
                )
        self.rejects = self._rejects or any(stream.rejects for stream in self)

    @property
    def rows_in_memory(self) -> Iterator[OutboxRow]:
        """The rows that are known as the oldest, or as the newest of a topic."""
        for stream in self:
            yield from stream.head.values()
            yield from (stream.latest or {}).values()

    def __iter__(self) -> Iterator[OutboxStream]:
        return iter(self.streams.values())

    def __len__(self) -> int:
        return len(self.streams)

    def of(self, name: str) -> OutboxStream:
        """Return the stream of this name; one that is not configured has the defaults."""
        stream = self.streams.get(name)
        if stream is None:
            stream = self.streams[name] = self._stream(StreamSettings(name))
        return stream

    def by_priority(self) -> list[list[str | None]]:
        """Return the names by falling priority, those of the same together.

        None stands for all of them if all have the same.
        """
        streams: dict[int, list[str | None]] = {}
        for stream in self:
            streams.setdefault(stream.settings.priority, []).append(stream.settings.name)
        if len(streams) < 2:
            return [[None]]
        return [streams[priority] for priority in sorted(streams, reverse=True)]

    def over(self, rows: int = 0, size: int = 0) -> bool:
        """Return whether the total would exceed its bounds with this much more."""
        return self.rows + rows > self.maximum_rows or self.bytes + size > self.maximum_bytes

    def refuses(self, rows: Sequence[OutboxRow]) -> bool:
        """Return whether one of `rows` does not fit, and no other may be evicted for it."""
        count, size = 0, 0
        for row in rows:
            stream = self.streams.get(row.stream) or self.of(row.stream)
            more, larger = 1, row.size
            # its topic's older row is deleted, so it adds no row
            if stream.latest is not None and (older := self.replaced(row)) is not None:
                more, larger = 0, row.size - older.size
            if stream.rejects and stream.over(more, larger):
                return True
            count += more
            size += larger
        return self._rejects and self.over(count, size + self.log_excess)

    def crowded(self, stream: OutboxStream, row: OutboxRow) -> bool:
        """Return whether something may have to be evicted for `row` (`next_to_evict`)."""
        size = row.size
        return (
            stream.latest is not None
            or stream.rows >= stream.maximum_rows
            or stream.bytes + size > stream.maximum_bytes
            or self.rows >= self.maximum_rows
            or self.bytes + size + self.log_excess > self.maximum_bytes
        )

    def fits(self, row: OutboxRow) -> bool:
        """Return whether `row` fits without an eviction."""
        if self.of(row.stream).over(1, row.size):
            return False
        return not self.over(1, row.size + self.log_excess)

    @property
    def have_capacity(self) -> bool:
        """Whether the total and each stream have capacity for a row of SMALL_ROW."""
        if self.over(1, SMALL_ROW + self.log_excess):
            return False
        return not any(stream.over(1, SMALL_ROW) for stream in self)

    def replaced(self, row: OutboxRow) -> OutboxRow | None:
        """Return the row that `row` makes obsolete: an older one of its topic."""
        latest = self.of(row.stream).latest
        older = None if latest is None or row.lane == RECALL else latest.get(row.message.topic)
        return None if older is None or self._is_claimed(older.id) else older

    def next_to_evict(self, row: OutboxRow | None = None) -> Eviction | None:
        """Return the row to evict for `row`, perhaps itself, or for the present excess.

        Returns None if all is within the bounds or nothing may be evicted. It also does while the
        oldest rows have not been read: until then the bounds may be exceeded.
        """
        if row is None:
            return self._of_any_stream() or self._of_all(None)
        return self._of_stream(self.of(row.stream), row) or self._of_all(row)

    def too_old(self, now_for: Callable[[OutboxRow], int]) -> OutboxRow | None:
        """Return a known row that has waited too long; `now_for` returns its present time (ms)."""
        ages = [self.retention.maximum_age]
        for stream in self.streams.values():
            own = stream.settings.retention.maximum_age
            bounds = [age for age in (*ages, own) if age is not None]
            oldest = stream.oldest(self._is_claimed) if bounds else None
            if oldest is not None and oldest.time <= now_for(oldest) - 1000 * min(bounds):
                return oldest
        return None

    def added(self, stream: OutboxStream, row: OutboxRow) -> bool:
        """Count a new row; return False if the newest row of a topic was forgotten for it."""
        # an empty stream is known as a whole
        knew_all = stream.known_to >= stream.last_id or not stream.rows
        self.rows += 1
        self.bytes += row.size
        stream.rows += 1
        stream.bytes += row.size
        stream.last_id = row.id
        if stream.has_head or stream.latest is not None:
            return stream.track(row, knew_all=knew_all)
        return True

    def removed(self, rows: Sequence[OutboxRow]) -> None:
        """Stop counting deleted rows."""
        self.has_removed = True
        self.rows -= len(rows)
        for row in rows:
            stream = self.streams.get(row.stream) or self.of(row.stream)
            self.bytes -= row.size
            stream.bytes -= row.size
            stream.rows -= 1
            if stream.has_head or stream.latest is not None:
                stream.forget(row)

    def _stream(self, settings: StreamSettings) -> OutboxStream:
        retention = self.retention
        return OutboxStream(settings, has_head=retention.needs_oldest, drops=retention.drops)

    def _of_any_stream(self) -> Eviction | None:
        for stream in self.streams.values():
            if (eviction := self._of_stream(stream, None)) is not None:
                return eviction
        return None

    def _of_stream(self, stream: OutboxStream, row: OutboxRow | None) -> Eviction | None:
        retention = stream.settings.retention
        if not (stream.over() if row is None else stream.over(1, row.size)):
            return None
        if row is not None and retention.drops_itself(row):
            return Eviction(row, retention.when_full)
        if retention.when_full is not WhenFull.DROP_OLDEST:
            return None
        oldest = stream.oldest(self._is_claimed)
        if row is None and oldest is not None and oldest.id == stream.last_id:
            return None  # added while all others are being sent, which are not evicted
        return None if oldest is None else Eviction(oldest, WhenFull.DROP_OLDEST)

    def _of_all(self, row: OutboxRow | None) -> Eviction | None:
        policy = self.retention.when_full
        rows, size = (0, 0) if row is None else (1, row.size)
        if policy is WhenFull.DROP_NEWEST:
            size += self.log_excess
        if policy is WhenFull.REJECT or not self.over(rows, size):
            return None
        if row is not None and self.retention.drops_itself(row):
            return Eviction(row, policy)
        if policy is WhenFull.DROP_NEWEST:
            return None
        streams = [stream for stream in self.streams.values() if stream.rows]
        if policy is WhenFull.DROP_LOWEST_PRIORITY and streams:
            lowest = min(stream.settings.priority for stream in streams)
            if row is not None and self.of(row.stream).settings.priority < lowest:
                return Eviction(row, policy)
            streams = [stream for stream in streams if stream.settings.priority == lowest]
        oldest = self._oldest_of(streams)
        if row is None and oldest is not None and oldest.id == self.last_id:
            return None  # as for a stream
        return None if oldest is None else Eviction(oldest, policy)

    def _oldest_of(self, streams: Sequence[OutboxStream]) -> OutboxRow | None:
        if any(not stream.head and not stream.knows_all for stream in streams):
            return None  # an unknown row may be older than the known ones
        known = (stream.oldest(self._is_claimed) for stream in streams)
        return min((row for row in known if row is not None), key=_by_id, default=None)


class OutboxTotals:
    """Keeps the totals of the streams exact on disk with few writes.

    A small outbox is counted at the start and has none. A larger one writes them in each batch that
    removes rows, and every SCAN_ROWS new rows: rows added since have higher ids, and are counted.
    """

    def __init__(self, database: Database, writer: Writer, bounds: OutboxBounds) -> None:
        self._database = database
        self._writer = writer
        self._bounds = bounds
        self._up_to = 0
        self._on_disk = False
        writer.before_batch.append(self._save)

    async def load(self) -> None:
        """Load the streams' totals of an earlier run, and the highest id of its rows."""
        bounds = self._bounds
        sums = await self._rows(_SUMS, ())
        self._on_disk = bool(sums)
        self._up_to = max((row[3] for row in sums), default=0)
        ((last_id,),) = await self._rows(_LAST, ())
        # the newest rows may be deleted by now, and ids must keep rising
        bounds.last_id = max(last_id, self._up_to)
        counted = await self._rows(_COUNT, (self._up_to,))
        for name, rows, size, *_ in (*sums, *counted):
            stream = bounds.of(name)
            stream.rows += rows
            stream.bytes += size
            # at least the real one, so that no incomplete `head` passes for the whole stream
            stream.last_id = bounds.last_id
            bounds.rows += rows
            bounds.bytes += size

    def _save(self) -> None:
        bounds = self._bounds
        if bounds.rows <= SCAN_ROWS:
            if self._on_disk:
                self._writer.add(_CLEAR, ())
            self._on_disk = False
        elif bounds.has_removed or not self._on_disk or bounds.last_id - self._up_to >= SCAN_ROWS:
            self._up_to = bounds.last_id
            self._on_disk = True
            for stream in bounds:
                row = (stream.settings.name, stream.rows, stream.bytes, self._up_to)
                self._writer.add(_SET, row)
        bounds.has_removed = False

    async def _rows(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        return await self._database.reader.query(statement, values, sqlite3.Cursor.fetchall)


def _maxima(retention: Retention) -> tuple[int, int]:
    """Return the most rows and bytes."""
    rows, size = retention.maximum_messages, retention.maximum_bytes
    return NO_BOUND if rows is None else rows, NO_BOUND if size is None else size


def _by_id(row: OutboxRow) -> int:
    return row.id
