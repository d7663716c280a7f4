"""Collects the rows of each turn on the loop's thread and commits them as batches in another."""

import asyncio
import logging
import math
from collections.abc import Callable

from gateway.counters import Counters
from gateway.storage.engine.commit_attempts import CommitAttempts
from gateway.storage.engine.connection import Connection, Row
from gateway.storage.engine.free_space import give_space_back
from gateway.storage.engine.wake_up import WakeUp

logger = logging.getLogger(__name__)

MAX_PENDING_ROWS = 100_000
"""Rows not yet on disk beyond which the writer is full: publishers are told 0x97."""

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""Bytes of the same rows; a Pi Zero has 512 MB for everything."""

ROW_OVERHEAD = 64
"""Bytes counted for each row beside its texts and blobs."""

SPACE_CHECK_ROWS = 1_024
"""Rows committed between two checks of how much free space the file holds."""

SPACE_CHECK_SECONDS = 2.0
"""Seconds after which that is checked although there were fewer rows."""

COMMIT_DELAY = 0.005
"""Seconds by which a commit may be put off while everyone who is owed a message can still
acknowledge it."""

MEMORY_DELAY = 1.0
"""Seconds by which a commit of the class `memory` is put off: nobody waits for it."""


class CommitDue:
    """The earliest of the times by which somebody wants the commit to begin.

    `at` is a second of the loop's clock: 0.0 for at once, infinite while nobody wants anything, or
    only what counts from the end of a turn that has not ended. `wanted` is True once somebody has
    asked for a commit, and `within` the shortest delay that was asked for.
    """

    __slots__ = ("_after_turn", "at", "wanted", "within")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin with a new batch, of which nobody has wanted anything."""
        self.wanted = False
        self.at = math.inf
        self.within = math.inf
        self._after_turn = math.inf  # the same, as far as it counts from the turn's end

    @property
    def passed(self) -> bool:
        """True when the commit is not to be put off any more."""
        return not self.at or self.at <= asyncio.get_running_loop().time()

    def schedule(self, within: float, commit_delay: float, stretch: float) -> None:
        """Have it begin at most `within` seconds from now (`Writer.schedule_commit`)."""
        if within >= self.within:
            return  # asked for earlier, and for no longer: that is due before
        self.within = within
        self.wanted = True
        if within <= 0.0:
            self.at = 0.0
        elif within <= commit_delay:
            self._after_turn = within
        else:
            within = max(commit_delay, within * stretch)
            self.at = min(self.at, asyncio.get_running_loop().time() + within)

    def end_turn(self) -> None:
        """Let what counts from the end of the turn count from now."""
        if self._after_turn < math.inf:
            due = asyncio.get_running_loop().time() + self._after_turn
            self.at, self._after_turn = min(self.at, due), math.inf


class Writer:
    """Commits rows in batches; nothing is acknowledged before `committed` says so.

    `batch` is the number of the pending batch, from 1; `committed` the highest number on
    disk. While one commit runs, later turns gather into the next batch (group commit); when it
    ends, the next begins at once if something in it is due by then, otherwise when it is.

    What is not a row yet is announced with `schedule_commit`. `before_batch` are called just before
    a batch is closed, to `add` what has to be written then: what was undone meanwhile never is.

    A commit that fails keeps its rows and is tried again until the disk takes them: `full` is
    True meanwhile, so that nobody is promised what cannot be kept. `alarm` is called with a
    text when that begins and with "" when it ends.

    `commit_delay` is for those who call `schedule_commit`. `stretch`, from 0.0 to 1.0, is applied
    to longer delays, but not to less than `commit_delay`: what wears a card are commits, so more of
    a promised window is kinder to it, and less is quicker to answer.

    With `durable` False (`--durability memory`) rows are written all the same, MEMORY_DELAY late,
    but `commit_number()` is 0: nothing waits for them.
    """

    def __init__(
        self,
        connection: Connection,
        counters: Counters,
        *,
        durable: bool = True,
        commit_delay: float = COMMIT_DELAY,
        alarm: Callable[[str], None] = lambda text: None,  # noqa: ARG005 - keeps the name
    ) -> None:
        self.batch = 1
        self.committed = 0
        self.on_committed: list[Callable[[int], None]] = []
        self.before_batch: list[Callable[[], None]] = []
        self.stretch = 1.0
        """The part of its window that a commit of the class `batch` waits: 1.0 is all of it."""
        self.durable = durable
        self.commit_delay = commit_delay
        self.refuses = ""
        """Why the database must not be given any more messages, set by who knows it."""
        self.pending_rows = 0
        self.pending_bytes = 0
        self.elided_rows = 0
        """Rows that stores need not write any more, because everyone has acknowledged before."""
        self.wake_up = WakeUp()
        self._connection = connection
        self._counters = counters
        self._open_batch: list[tuple[str, list[Row]]] = []
        self._open_rows = 0
        self._open_bytes = 0
        self.due = CommitDue()  # a turn does without `hand_over` while nothing is wanted
        self._closed = 0, 0, 0  # number, rows and bytes of the batch that is being written
        self._busy = False  # from the closing of a batch until nothing more is to be done for it
        self._idle: asyncio.Future[None] | None = None  # what `close` waits for
        self._rows_since_check = SPACE_CHECK_ROWS  # what an earlier run left
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._space_timer: asyncio.TimerHandle | None = None
        self._closing = asyncio.Event()
        self.attempts = CommitAttempts(
            connection, counters, self._closing, alarm, self._show_pending, self._written
        )

    @property
    def full(self) -> bool:
        """True while the disk refuses or is full, or more is pending than a bound allows."""
        attempts = self.attempts
        return (
            attempts.failing
            or bool(self.refuses)
            or attempts.disk_full
            or self.pending_rows >= MAX_PENDING_ROWS
            or self.pending_bytes >= MAX_PENDING_BYTES
        )

    def add(self, statement: str, row: Row, within: float | None = 0.0) -> int:
        """Gather one execution of `statement` with `row`; return the number of its batch.

        Its commit begins at this turn's end, or at most `within` seconds from now, which is None
        for the class `memory`.
        """
        if within is None or within < self.due.within:  # else somebody wants it as soon
            self.schedule_commit(within)
        if self._open_batch and self._open_batch[-1][0] == statement:
            self._open_batch[-1][1].append(row)
        else:
            self._open_batch.append((statement, [row]))
        size = ROW_OVERHEAD
        for value in row:
            if type(value) is bytes or type(value) is str:
                size += len(value)
        self._open_rows += 1
        self._open_bytes += size
        self.pending_rows += 1
        self.pending_bytes += size
        return self.batch

    def add_rows(self, statement: str, rows: list[Row], size: int) -> None:
        """Gather one execution with each of `rows`, which hold so many bytes in texts and blobs.

        They are for this turn's end. The list is the writer's from now on.
        """
        if not rows:
            return
        if self.due.within > 0.0:
            self.schedule_commit(0.0)
        size += ROW_OVERHEAD * len(rows)
        self._open_batch.append((statement, rows))
        self._open_rows += len(rows)
        self._open_bytes += size
        self.pending_rows += len(rows)
        self.pending_bytes += size

    def schedule_commit(self, within: float | None) -> None:
        """Announce rows to come: the commit begins at most `within` seconds from now.

        With 0.0 it begins at this turn's end, and up to `commit_delay` counts from there: before,
        nobody has been sent what might be acknowledged. `before_batch` adds them.
        """
        if within is None:
            within = MEMORY_DELAY
        elif not self.durable:
            within = max(within, MEMORY_DELAY)
        self.due.schedule(within, self.commit_delay, self.stretch)

    def commit_number(self) -> int:
        """Return the newest batch with work that is not on disk, 0 if there is none to wait for.

        An answer that promises the rows added up to now may leave once `committed` has
        reached this number.
        """
        if not self.durable:
            return 0
        if self.due.wanted:
            return self.batch
        return self.batch - 1 if self.committed < self.batch - 1 else 0

    def hand_over(self) -> None:
        """End a turn: start to commit if something is due, unless a commit is running."""
        due = self.due
        if not due.wanted:
            return
        due.end_turn()
        if self._busy:
            return
        if self._is_due():
            self._begin()
        elif self._timer is None or self._timer.when() > due.at:
            self._disarm()
            self._timer = asyncio.get_running_loop().call_at(due.at, self._begin)

    async def close(self) -> None:
        """Commit what is left; return when it is on disk or the disk has refused it once more.

        The connection stays open: it belongs to the caller.
        """
        self._closing.set()
        if self._space_timer is not None:
            self._space_timer.cancel()
        for _ in range(2):  # the first may have given space back, and committed nothing
            self.hand_over()
            if self._busy:
                self._idle = asyncio.get_running_loop().create_future()
                await self._idle
        if self.pending_rows:
            logger.critical("%d rows could not be written before the stop", self.pending_rows)

    def _is_due(self) -> bool:
        """Return True when the next commit is not to be put off any more."""
        return self.due.wanted and (self._closing.is_set() or self.due.passed)

    def _begin(self) -> None:
        if self._timer is not None:
            self._disarm()
        if not self._busy:
            self._busy = True
            self._commit()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _commit(self) -> None:
        """Close the open batch and have it written, and those behind it as long as one is due."""
        while True:
            for gather in self.before_batch:  # which may add rows to this batch
                gather()
            batch, rows = self._open_batch, self._open_rows
            self._closed = self.batch, rows, self._open_bytes
            self.batch += 1
            self._open_batch, self._open_rows, self._open_bytes = [], 0, 0
            self.due.clear()
            if batch:
                self.attempts.begin(batch, rows)  # which ends with `_written`
                return
            self._note_written()
            if not self._is_due():
                break
        self._rest()

    def _written(self, done: bool) -> None:
        """Go on behind an attempt that has ended: the batch is on disk if it is `done`."""
        if done:
            self._note_written()
        if self._is_due() and not (self.attempts.failing and self._closing.is_set()):
            self._commit()
        else:
            self._rest()

    def _note_written(self) -> None:
        """Call whoever waits for the batch that was closed last."""
        self.committed, rows, size = self._closed
        self.pending_rows -= rows
        self.pending_bytes -= size
        self._rows_since_check += rows
        self._show_pending()
        for callback in self.on_committed:
            callback(self.committed)

    def _rest(self) -> None:
        """Give space back if it is time, then wait for the next batch."""
        if self._rows_since_check >= SPACE_CHECK_ROWS and not self.attempts.failing:
            self._task = asyncio.get_running_loop().create_task(self._give_space_back())
        else:
            self._wait()

    def _wait(self) -> None:
        """Be ready for the next batch, which is begun at once if it is due by now."""
        self._busy = False
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
        if self._closing.is_set():
            return
        if self.due.wanted:
            self.hand_over()  # what a turn handed over during the last step, or put off
        if self._rows_since_check and self._space_timer is None:
            loop = asyncio.get_running_loop()
            self._space_timer = loop.call_later(SPACE_CHECK_SECONDS, self._give_space_back_later)

    def _give_space_back_later(self) -> None:
        """Give back what few but perhaps large rows have freed, now that it is quiet."""
        self._space_timer = None
        self._rows_since_check = SPACE_CHECK_ROWS
        if not self._busy and not self._closing.is_set():
            self._busy = True
            self._rest()

    async def _give_space_back(self) -> None:
        self._rows_since_check = 0
        if not await give_space_back(self._connection, self._called):
            self._rows_since_check = SPACE_CHECK_ROWS  # the last batch finds the rest
        self._wait()

    def _called(self) -> bool:
        return self._is_due() or self._closing.is_set()

    def _show_pending(self) -> None:
        self._counters.set("tidegate/storage/pending_rows", self.pending_rows)
