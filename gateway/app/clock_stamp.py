"""Notes the wall clock's time on disk, so that no step of it ends anything early."""

from functools import partial

from gateway.broker.instant import Instant
from gateway.broker.publishing.expiry import STEP, Expiry
from gateway.clock import Clock
from gateway.storage.engine.connection import Batch
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.sessions.broker_store import FORWARD
from gateway.storage.state.clock_store import (
    NEWEST_IN_OUTBOX,
    NOTE_STEP,
    Stamp,
    boot_number,
    read_stamp,
)

KERNEL_SECONDS = 10.0
"""Seconds between two queries of the kernel whether the clock is right."""

WALL_SECONDS = 1.0
"""Seconds between two notes of a clock that may be wrong, with commits that are made in any
case."""


async def open_clock_stamp(clock: Clock, database: Database) -> "ClockStamp":
    """Return the stamp of this start, once the times on disk are those of its clock.

    If the clock was set forward since the last stamp, all times on disk are moved by as much. If it
    was set back, things last longer; the step is noted for the outbox. Its messages would otherwise
    be moved forward when the clock is corrected, and last for years.
    """
    stamp = ClockStamp(clock)
    last = await read_stamp(database)
    now = stamp.at_start()[1]
    gained = 0 if last is None else await _gained(database, last, stamp.stamp, now)
    if not database.in_memory:
        forward: Batch = [(each, [(gained, now)]) for each in FORWARD] if gained > 0 else []
        noted: Batch = [(NOTE_STEP, [(gained,)])] if gained else []
        await database.writer.write([*forward, *noted, *stamp.stamp.rows])
    return stamp


async def _gained(database: Database, last: Stamp, present: Stamp, now: int) -> int:
    """Return by how many ms the clock was set forward since the last stamp, or back if negative.

    In the same boot the monotonic clock shows that. After another boot nothing does. If the kernel
    did not know that the clock was right, the last noted time counts as now. If it did, the time
    without power counts, unless the clock is earlier than before.
    """
    if last.boot == present.boot:
        gained = present.ahead - last.ahead
    elif last.wall is not None:
        gained = now - last.wall
    else:
        newest = await database.writer.query(NEWEST_IN_OUTBOX, (), lambda cursor: cursor.fetchone())
        gained = 0 if newest is None else min(0, now - int(newest[0]))
    return gained if abs(gained) >= STEP else 0


class ClockStamp:
    """The stamp as it is on disk, or in the pending batch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._boot = boot_number(clock.boot_id())
        self._synchronized = False
        self._kernel_read_at = -KERNEL_SECONDS
        monotonic, wall = clock.monotonic(), clock.wall_ms()
        self._ahead = wall - round(1000 * monotonic)
        self.stamp = self._made(monotonic, wall, self._ahead)
        self._due = 0.0  # the second at which the clock is noted next, unless it is set

    def at_start(self) -> tuple[float, int]:
        """Return monotonic seconds and the wall time of the clock as it was found."""
        monotonic = self._clock.monotonic()
        return monotonic, round(1000 * monotonic) + self._ahead

    def watch(self, expiry: Expiry, writer: Writer) -> None:
        """Check the clock before each batch, and write its time with the batch."""
        expiry.clock_ahead = float(self._ahead)
        writer.before_batch.insert(0, partial(self._add_row, expiry, writer))

    def check(self, expiry: Expiry) -> None:
        """Check whether the clock was set, apart from any turn."""
        expiry.check_clock(Instant(self._clock.monotonic(), self._clock.wall_ms()))

    def _add_row(self, expiry: Expiry, writer: Writer) -> None:
        clock, stamp = self._clock, self.stamp
        monotonic, wall = clock.monotonic(), clock.wall_ms()
        # Usually the clock has not been set, and was noted recently.
        if monotonic < self._due and abs(wall - 1000 * monotonic - stamp.ahead) < STEP:
            return
        expiry.check_clock(Instant(monotonic, wall))
        ahead = int(expiry.clock_ahead)
        present = self._made(monotonic, wall, ahead)
        gained = ahead - stamp.ahead
        if self._is_news(present):
            if abs(gained) >= STEP:
                writer.add(NOTE_STEP, (gained,))
            self.stamp = present
            for statement, rows in present.rows:
                for row in rows:
                    writer.add(statement, row)
        elif present.wall is not None:
            return  # it is due by now
        self._due = monotonic + WALL_SECONDS

    def _made(self, monotonic: float, wall: int, ahead: int) -> Stamp:
        """Return the present stamp."""
        if monotonic - self._kernel_read_at >= KERNEL_SECONDS:
            self._kernel_read_at = monotonic
            self._synchronized = self._clock.synchronization().synchronized
        return Stamp(self._boot, ahead, None if self._synchronized else wall)

    def _is_news(self, present: Stamp) -> bool:
        last = self.stamp
        if (last.ahead, last.wall is None) != (present.ahead, present.wall is None):
            return True
        if last.wall is None or present.wall is None:
            return False
        return present.wall - last.wall >= 1000 * WALL_SECONDS
