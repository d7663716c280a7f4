"""Collects the rows of each turn on the loop's thread and commits them as batches in another."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

from gateway.counters import Counters
from gateway.mqtt.output import Pending
from gateway.storage.engine.connection import Batch, Connection, Row
from gateway.storage.engine.damage import is_disk_full
from gateway.storage.engine.free_space import FreeSpace, give_space_back
from gateway.storage.engine.wake_up import CommitDue, WakeUp


class CommitFigures:
    """Counts commits under `$SYS/broker/tidegate/storage/`; means are over the whole run."""

    __slots__ = ("_commits", "_longest", "_most_rows", "_rows", "_seconds", "_values")

    def __init__(self, counters: Counters) -> None:
        self._values = counters.values
        self._commits = 0
        self._rows = 0
        self._most_rows = 0
        self._seconds = 0.0
        self._longest = 0.0
        counters.set("tidegate/storage/commits", 0)
        counters.set("tidegate/storage/rows", 0)

    def count(self, rows: int, seconds: float) -> None:
        """Count a commit of so many rows; `seconds` includes the switch to its thread."""
        values = self._values
        self._commits = commits = self._commits + 1
        self._rows += rows
        self._seconds += seconds
        values["tidegate/storage/commits"] = commits
        values["tidegate/storage/rows"] = self._rows
        if rows > self._most_rows:
            values["tidegate/storage/commit_rows_most"] = self._most_rows = rows
        if seconds > self._longest:
            self._longest = seconds
            values["tidegate/storage/commit_ms_longest"] = round(1000 * seconds, 2)

    def show_means(self) -> None:
        """Set the means, which nobody reads after each commit."""
        if commits := self._commits:
            values = self._values
            values["tidegate/storage/commit_rows_mean"] = round(self._rows / commits, 1)
            values["tidegate/storage/commit_ms_mean"] = round(1000 * self._seconds / commits, 2)


logger = logging.getLogger(__name__)

FIRST_RETRY = 0.1
LONGEST_RETRY = 5.0
"""Seconds between two attempts to write a batch that the disk refused; doubled each time."""


ON_DISK, NOT_WRITTEN = True, False
"""The results of attempts at a batch."""


class CommitAttempts:
    """Attempts to commit, repeated while the disk fails and `closing` is not set.

    `failing` is True from the first failure until the disk is writable again. `alarm` is called
    with a text when that begins and with "" when it ends, `on_failed` after each failure. `on_end`
    is called with True when a batch is on disk, with False if it is not and `closing` is set.
    `free_space`, once it is set, makes space when the disk is full.
    """

    def __init__(
        self,
        connection: Connection,
        counters: Counters,
        closing: asyncio.Event,
        alarm: Callable[[str], None],
        on_failed: Callable[[], None],
        on_end: Callable[[bool], None],
    ) -> None:
        self.failing = False
        self.free_space: FreeSpace | None = None
        self.are_cut: Callable[[], bool] = lambda: False  # called before each commit
        """Whether one of the files was truncated."""
        self.are_gone: Callable[[], bool] = lambda: False  # called after each commit
        """Whether the files are gone: what is committed to them must not be acknowledged."""
        self._connection = connection
        self._counters = counters
        self.figures = CommitFigures(counters)
        self._closing = closing
        self._alarm = alarm
        self._on_failed = on_failed
        self._on_end = on_end
        self._batch: Batch = ()
        self._number = 0
        self._rows = 0
        self._made_space = False
        self._began = 0.0
        self._delay = FIRST_RETRY
        self._task: asyncio.Task[None] | None = None

    @property
    def disk_full(self) -> bool:
        """True while the disk is full: pending rows are still written, but no more are accepted."""
        return self.free_space is not None and self.free_space.exhausted

    def begin(self, number: int, batch: Batch, rows: int) -> None:
        """Try to write a batch of so many rows until it is on disk."""
        self._batch, self._number, self._rows = batch, number, rows
        self._delay, self._made_space = FIRST_RETRY, False
        free_space = self.free_space
        if free_space is not None and free_space.exhausted:
            free_space.begin_batch(number)
        self._try()

    def _try(self) -> None:
        # Before the commit: SQLite would extend a truncated log, and hide the damage.
        if self.are_cut():
            self._go_on(self._end_unwritten())
            return
        self._began = monotonic()
        self._connection.begin_write(self._batch, self._tried)

    def _tried(self, _: None, failure: BaseException | None) -> None:
        if failure is not None:
            self._go_on(self._handle(failure))
        # committed, but perhaps to files that are already deleted
        elif self.are_gone():
            self._go_on(self._end_unwritten())
        else:
            ended = monotonic()
            self.figures.count(self._rows, ended - self._began)
            if self.failing:
                self._recovered()
            free_space = self.free_space
            if free_space is not None and free_space.check_log and free_space.is_log_too_long():
                self._go_on(self._fold_log(free_space))
            else:
                self._on_end(ON_DISK)

    def _go_on(self, what: Coroutine[Any, Any, None]) -> None:
        """Run a longer step; it ends the attempt, or begins the next."""
        self._task = asyncio.get_running_loop().create_task(what)

    async def _end_unwritten(self) -> None:
        await self._closing.wait()
        self._on_end(NOT_WRITTEN)

    async def _fold_log(self, free_space: FreeSpace) -> None:
        await free_space.fold_log_now()
        self._on_end(ON_DISK)

    async def _handle(self, failure: BaseException) -> None:
        """Make space, or wait, for the next attempt."""
        # Whatever the error is, such as a value that SQLite cannot hold: nothing after it may be
        # acknowledged as if it were stored.
        if not await self._makes_space(failure):
            self._failed(failure)
            if not self._closing.is_set():
                await self._wait()
                self._delay = min(2 * self._delay, LONGEST_RETRY)
            if self._closing.is_set():
                self._on_end(NOT_WRITTEN)
                return
        self._try()

    async def _makes_space(self, error: BaseException) -> bool:
        """Make space on a full disk; return whether this is the first time for this batch."""
        free_space = self.free_space
        if free_space is None or not is_disk_full(error):
            return False
        await free_space.make_space(self._number + 1)
        if self._made_space:
            free_space.note_stuck(self._number)
            return False
        self._made_space = True
        return True

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), self._delay)

    def _failed(self, error: BaseException) -> None:
        self._counters.add("tidegate/storage/failures")
        self._on_failed()
        if not self.failing:
            self.failing = True
            logger.critical("the database cannot be written: %s; publishers are refused", error)
            self._alarm(f"the database cannot be written: {error}")

    def _recovered(self) -> None:
        self.failing = False
        logger.warning("the database can be written again")
        self._alarm("")


logger = logging.getLogger(__name__)

MAX_PENDING_ROWS = 100_000
"""Rows not yet on disk above which the writer is full: publishers get 0x97."""

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""Bytes of the same rows; a Pi Zero has 512 MB for everything."""

ROW_OVERHEAD = 64
"""Bytes counted for each row beside its texts and blobs."""

SPACE_CHECK_ROWS = 1_024
"""Rows committed between two checks of how much free space the file holds."""

SPACE_CHECK_SECONDS = 2.0
"""Seconds after which that is checked although there were fewer rows."""

COMMIT_DELAY = 0.005
"""Seconds by which a commit may be delayed while every receiver can still acknowledge before."""

MEMORY_DELAY = 1.0
"""Seconds by which a commit of the class `memory` is delayed: nobody waits for it."""


class Writer:
    """Commits rows in batches; nothing may be acknowledged before `committed` reaches its batch.

    `batch` is the number of the pending batch, from 1; `committed` the highest number on disk.
    While one commit runs, later turns add to the next batch (group commit). When it ends, the next
    begins at once if it is due by then, otherwise when it is.

    Changes that are not rows yet are announced with `schedule_commit`. `before_batch` are called
    just before a batch is closed, to `add` these rows: what was undone meanwhile is never written.

    A failed commit keeps its rows and is tried again until the disk accepts them: `full` is True
    meanwhile, so that nothing is acknowledged. `alarm` is called with a text when that begins and
    with "" when it ends.

    `commit_delay` is for callers of `schedule_commit`. `stretch`, from 0.0 to 1.0, scales longer
    delays, but not below `commit_delay`: commits wear a card, so longer delays spare it, and
    shorter ones answer sooner.

    With `durable` False (`--durability memory`) rows are still written, MEMORY_DELAY later, but
    `commit_number()` is 0: nothing waits for them.
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
        """Why the database must not get more messages, set by the part that finds out."""
        self.pending = Pending()
        self.pending_rows = 0
        self.pending_bytes = 0
        self.elided_rows = 0
        """Rows that stores did not have to write, because every receiver acknowledged before."""
        self.wake_up = WakeUp()
        self._connection = connection
        self._counters = counters
        self._open_batch: list[tuple[str, list[Row]]] = []
        self._open_rows = 0
        self._open_bytes = 0
        self.due = CommitDue()  # a turn skips `hand_over` while no commit is wanted
        self._closed = 0, 0, 0  # number, rows and bytes of the batch that is being written
        self._busy = False  # from the closing of a batch until its callbacks have run
        self._idle: asyncio.Future[None] | None = None  # what `close` waits for
        self._news = asyncio.Event()  # set when a batch is on disk, for `wait_for`
        self._rows_since_check = SPACE_CHECK_ROWS  # an earlier run may have left free pages
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._space_timer: asyncio.TimerHandle | None = None
        self._closing = asyncio.Event()
        self.attempts = CommitAttempts(
            connection, counters, self._closing, alarm, self._show_pending, self._written
        )

    @property
    def full(self) -> bool:
        """True while the disk fails or is full, or more is pending than a bound allows."""
        return not self.accepts(0)

    def accepts(self, size: int) -> bool:
        """Return whether rows with so many bytes may be added."""
        attempts = self.attempts
        if (
            attempts.failing
            or self.refuses
            or self.pending_rows >= MAX_PENDING_ROWS
            or self.pending_bytes >= MAX_PENDING_BYTES
        ):
            return False
        free_space = attempts.free_space
        if free_space is None:
            return True
        pending = self.pending_bytes + size
        return not free_space.exhausted and (
            pending <= free_space.checked_bytes or free_space.fits(pending)
        )

    def add(self, statement: str, row: Row, commit_within: float | None = 0.0) -> int:
        """Add one execution of `statement` with `row`; return the number of its batch.

        Its commit begins at this turn's end, or at most `commit_within` seconds from now; None is
        the class `memory`.
        """
        if (
            commit_within is None or commit_within < self.due.commit_within
        ):  # otherwise a commit is already due as soon
            self.schedule_commit(commit_within)
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
        self.pending.changes += 1
        self.pending_rows += 1
        self.pending_bytes += size
        return self.batch

    def add_rows(self, statement: str, rows: list[Row], size: int) -> None:
        """Add one execution with each of `rows`, with `size` bytes in texts and blobs.

        They are for this turn's end. The list belongs to the writer from now on.
        """
        if not rows:
            return
        if self.due.commit_within > 0.0:
            self.schedule_commit(0.0)
        size += ROW_OVERHEAD * len(rows)
        self._open_batch.append((statement, rows))
        self._open_rows += len(rows)
        self._open_bytes += size
        self.pending.changes += len(rows)
        self.pending_rows += len(rows)
        self.pending_bytes += size

    def schedule_commit(self, commit_within: float | None) -> None:
        """Announce rows to come: the commit begins at most `commit_within` seconds from now.

        With 0.0 it begins at this turn's end. A delay up to `commit_delay` counts from there:
        before, no receiver has been sent anything that it could acknowledge. `before_batch` adds
        the rows.
        """
        if commit_within is None:
            commit_within = MEMORY_DELAY
        elif not self.durable:
            commit_within = max(commit_within, MEMORY_DELAY)
        self.due.schedule(commit_within, self.commit_delay, self.stretch)

    def commit_number(self) -> int:
        """Return the newest batch that is not on disk, 0 if there is none to wait for.

        An answer that promises the rows added up to now may be sent once `committed` has reached
        this number.
        """
        if not self.durable:
            return 0
        if self.due.wanted:
            return self.batch
        return self.batch - 1 if self.committed < self.batch - 1 else 0

    def hand_over(self) -> None:
        """End a turn: start a commit if one is due, unless one is running."""
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

    async def wait_for(self, batch: int) -> None:
        """Commit what is pending, and wait until the batch is on disk.

        While the disk fails, the caller waits.
        """
        self.schedule_commit(0.0)
        self.hand_over()
        while self.pending_rows and self.committed < batch:
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        """Commit the rest; return when it is on disk or the disk has failed once more.

        The connection stays open: it belongs to the caller.
        """
        self._closing.set()
        if self._space_timer is not None:
            self._space_timer.cancel()
        for _ in range(2):  # the first round may only have returned space
            self.hand_over()
            if self._busy:
                self._idle = asyncio.get_running_loop().create_future()
                await self._idle
        if self.pending_rows:
            logger.critical("%d rows could not be written before the stop", self.pending_rows)

    def _is_due(self) -> bool:
        """Return True when the next commit is due."""
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
        """Close the open batch and have it written, and following empty ones while one is due."""
        while True:  # a loop: a call after each empty batch would nest without bound
            for gather in self.before_batch:  # which may add rows to this batch
                gather()
            batch, rows = self._open_batch, self._open_rows
            self._closed = self.batch, rows, self._open_bytes
            self.batch += 1
            self._open_batch, self._open_rows, self._open_bytes = [], 0, 0
            self.due.clear()  # after `gather`: what those scheduled is in the closed batch
            if batch:
                self.attempts.begin(self.batch - 1, batch, rows)  # which ends with `_written`
                return
            self._note_written()
            if not self._is_due():
                break
        self._rest()

    def _written(self, done: bool) -> None:
        """Continue after an attempt; the batch is on disk if it is `done`."""
        if done:
            self._note_written()
        # after the start of the stop a failed batch is not tried again
        if self._is_due() and not (self.attempts.failing and self._closing.is_set()):
            self._commit()
        else:
            self._rest()

    def _note_written(self) -> None:
        """Call everything that waits for the batch that was closed last."""
        self.committed, rows, size = self._closed
        self.pending_rows -= rows
        self.pending_bytes -= size
        self._rows_since_check += rows
        self._show_pending()
        self._news.set()
        # Still busy: rows of callbacks are in the next batch, which begins after all of them.
        for callback in self.on_committed:
            callback(self.committed)

    def _rest(self) -> None:
        """Return space if it is time, then wait for the next batch."""
        # returning space writes to the disk, too
        if self._rows_since_check >= SPACE_CHECK_ROWS and not self.attempts.failing:
            self._task = asyncio.get_running_loop().create_task(self._give_space_back())
        else:
            self._wait()

    def _wait(self) -> None:
        """Be ready for the next batch, which begins at once if it is due."""
        self._busy = False
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
        if self._closing.is_set():
            return
        if self.due.wanted:
            self.hand_over()  # handed over during the last step, or postponed
        if self._rows_since_check and self._space_timer is None:
            loop = asyncio.get_running_loop()
            self._space_timer = loop.call_later(SPACE_CHECK_SECONDS, self._give_space_back_later)

    def _give_space_back_later(self) -> None:
        """Return space that few but perhaps large rows have freed, now that it is quiet."""
        self._space_timer = None
        self._rows_since_check = SPACE_CHECK_ROWS
        if not self._busy and not self._closing.is_set():
            self._busy = True
            self._rest()

    async def _give_space_back(self) -> None:
        self._rows_since_check = 0
        if not await give_space_back(self._connection, self._called):
            self._rows_since_check = SPACE_CHECK_ROWS  # the last batch does the rest
        self._wait()

    def _called(self) -> bool:
        return self._is_due() or self._closing.is_set()

    def _show_pending(self) -> None:
        self._counters.set("tidegate/storage/pending_rows", self.pending_rows)
