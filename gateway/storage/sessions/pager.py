"""Reads what queues have only on disk, and deletes there what nobody waits for any more."""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from gateway.session.journal import OnPage
from gateway.session.queue.memory import HEAD_BYTES, HEAD_MESSAGES
from gateway.session.restored import CLOCK_SET
from gateway.session.span import Span
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.reading import Reading, Values
from gateway.storage.sessions.stored_spans import READ, SpanReader

if TYPE_CHECKING:
    from gateway.storage.sessions.session_journal import SessionJournal

logger = logging.getLogger(__name__)

PAGE_MESSAGES = HEAD_MESSAGES // 2
"""Deliveries of one read: a queue requests the next when half of its head is gone."""

PAGE_BYTES = HEAD_BYTES // 2
"""Bytes of them; the last may exceed it."""

STEP_ROWS = 256
"""Deliveries of one batch that are deleted after a session ended or they expired, or are given to
other members of a shared subscription."""

LAST_SEQUENCE = 2**62

_ENDED = (
    "SELECT sequence, message, size, alone, messages, shared_filter IS NOT NULL FROM delivery"
    " WHERE session = ? ORDER BY sequence LIMIT ?"
)
_EXPIRED = (
    "SELECT expires, session, sequence, message, size, alone, messages FROM delivery"
    " WHERE expires BETWEEN ? AND ? AND (expires, session, sequence) > (?, ?, ?)"
    " ORDER BY expires, session, sequence LIMIT ?"
)

_WAITING = (
    "SELECT session, sequence, message, size, alone, messages FROM delivery"
    " WHERE session = ? AND sequence BETWEEN ? AND ? ORDER BY sequence"
)
_OLDEST = f"{_WAITING} LIMIT ?"
_NEWEST = f"{_WAITING} DESC LIMIT ?"

Now = Callable[[], tuple[float, int]]
"""Returns monotonic seconds and wall milliseconds, and begins a turn of the gateway."""

OnUndelivered = Callable[[list[Span], float, int], None]


class Job(Protocol):
    """Work that is done in steps; a step's changes are committed before the next step."""

    async def step(self) -> bool:
        """Take one step; return True after the last."""
        ...


class Pager:
    """Runs one job after another beside the loop, so that each row on disk has one owner.

    After a step with changes the next one waits until they are on disk: so reads see the present
    state. `spawn` runs a coroutine; `later` calls back after a while.
    """

    def __init__(
        self,
        reading: Reading,
        pending: PendingBatch,
        now: Now,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        self.reading = reading
        self.pending = pending
        self.now = now
        self.journals: dict[int, SessionJournal] = {}
        self.on_undelivered: OnUndelivered = lambda deliveries, monotonic, wall: None  # noqa: ARG005 - keeps the names
        self._spawn = spawn
        self._later = later
        self._jobs: deque[Job] = deque()
        self._busy = False
        self._waits_for = 0
        self._committed = 0
        self._sweeping = False
        self._cut: set[int] = set()  # numbers of sessions

    def know(self, journal: "SessionJournal") -> None:
        """Add a session whose deliveries may expire."""
        self.journals[journal.number] = journal

    def forget(self, journal: "SessionJournal") -> None:
        """Remove a session that ended."""
        self.journals.pop(journal.number, None)

    def load(self, journal: "SessionJournal", after: int, up_to: int, on_page: OnPage) -> None:
        """Pass the first deliveries above sequence number `after`, up to `up_to`, to `on_page`."""
        self._add(_Load(self, journal, after, up_to, on_page))

    def end(self, journal: "SessionJournal") -> None:
        """Delete an ended session's deliveries, and offer them to shared subscriptions.

        Those that were in memory are deleted with the pending batch.
        """
        self.changed()
        self._add(_End(self, journal))

    def sweep(self) -> None:
        """Delete what has expired, unless that is being done."""
        if not self._sweeping:
            self._sweeping = True
            self._add(_Sweep(self))

    def cut(
        self, journal: "SessionJournal", size: int, dropped: Callable[[int], None], *, newest: bool
    ) -> None:
        """Delete this many bytes that a session has only on disk, unless that is being done."""
        if journal.number not in self._cut:
            self._cut.add(journal.number)
            self._add(_Cut(self, journal, size, dropped, newest=newest))

    def was_cut(self, journal: "SessionJournal") -> None:
        """Note that the deletion for a session is complete."""
        self._cut.discard(journal.number)

    def remove(
        self, session: int, last: int, message: int, size: int, unshared: int, messages: int
    ) -> int:
        """Delete a row, unless it is in memory, where its owner finds it.

        Return how many messages.
        """
        journal = self.journals.get(session)
        if journal is None or journal.queue is None:
            return 0  # of an ended session, which _End deletes
        if not journal.queue.remove_paged(last, size, messages):
            return 0
        journal.forget(last, message, size, unshared=bool(unshared), count=messages)
        return messages

    def swept(self) -> None:
        """Note that a sweep is complete."""
        self._sweeping = False

    def committed(self, batch: int) -> None:
        """Continue jobs that waited for this batch."""
        self._committed = batch
        self._go()

    def changed(self) -> None:
        """Note that a step has made changes: the next one waits until they are on disk."""
        self.pending.put_off()
        self._waits_for = self.pending.commit_number()

    def _add(self, job: Job) -> None:
        self._jobs.append(job)
        self._go()

    def _go(self) -> None:
        # One step at a time, and none before the last one's changes are on disk: otherwise a reader
        # would see rows that are being deleted, and a row would be sent or counted twice.
        if self._jobs and not self._busy and self._committed >= self._waits_for:
            self._busy = True
            self._spawn(self._run(self._jobs[0]))

    async def _run(self, job: Job) -> None:
        try:
            done = await job.step()
        except sqlite3.Error as error:
            logger.warning("a queue on disk cannot be read: %s", error)
            self._later(self._again)  # the same job again: its session waits for the result
            return
        if done:
            self._jobs.popleft()
        self._again()

    def _again(self) -> None:
        self._busy = False
        self._go()


class _Load:
    """Reads one page of a queue."""

    def __init__(
        self, pager: Pager, journal: "SessionJournal", after: int, up_to: int, on_page: OnPage
    ) -> None:
        self._pager = pager
        self._journal = journal
        self._bounds = (after, up_to)
        self._on_page = on_page

    async def step(self) -> bool:
        pager, journal = self._pager, self._journal
        # the session may have ended while the job waited
        if not journal.open:
            return True
        row = (journal.number, *self._bounds, PAGE_MESSAGES)
        reader = SpanReader(*pager.now())

        def whole(_: object = None) -> bool:
            return reader.size >= PAGE_BYTES or reader.messages >= PAGE_MESSAGES

        found = await pager.reading.rows(
            READ, "delivery to session", reader.spans, row, whole, texts=False
        )
        if journal.open:  # it may have ended while the page was read
            # if nothing of a whole page is readable, stop: the next read would begin at the same
            # place
            complete = not whole() and (reader.rows < PAGE_MESSAGES or not found)
            self._on_page(list(chain.from_iterable(found)), complete, pager.now()[0])
        return True


class _End:
    """Deletes the rest of an ended session, a batch at a time."""

    def __init__(self, pager: Pager, journal: "SessionJournal") -> None:
        self._pager = pager
        self._journal = journal

    async def step(self) -> bool:
        pager, journal = self._pager, self._journal
        row = (journal.number, STEP_ROWS)
        found = await pager.reading.rows(_ENDED, "delivery of session", _as_it_is, row)
        if not found:
            return True
        if any(shared for *_, shared in found):
            # Another member gets them before they are deleted here, in the same batch: after a
            # crash they belong to this session or to that one.
            last = await self._share_out(found[-1][0])
            found = [values for values in found if values[0] <= last]
        for sequence, message, size, unshared, messages, _ in found:
            journal.forget(sequence, message, size, unshared=bool(unshared), count=messages)
        # begins a turn, which ends with a commit of the changes
        pager.now()
        pager.changed()
        return False

    async def _share_out(self, up_to: int) -> int:
        """Offer what is on disk up to this sequence number, or a page of it.

        Return the last number.
        """
        pager = self._pager
        row = (self._journal.number, 0, up_to, STEP_ROWS)
        reader = SpanReader(*pager.now())

        def enough(_: object) -> bool:
            return reader.size >= PAGE_BYTES

        found = await pager.reading.rows(
            READ, "delivery to session", reader.spans, row, enough, texts=False
        )
        read = list(chain.from_iterable(found))
        # a page may end before `up_to`; the next step reads the rest
        last = read[-1].last if reader.size >= PAGE_BYTES else up_to
        shared = [each for each in read if each.topic_filter]
        for each in shared:
            each.publication.stored_for = 0  # the receiving session writes it again
        pager.on_undelivered(shared, *pager.now())
        return last


class _Sweep:
    """Deletes what has expired only on disk, a batch at a time."""

    def __init__(self, pager: Pager) -> None:
        self._pager = pager
        self._last = (0, 0, 0)

    async def step(self) -> bool:
        pager = self._pager
        _, wall = pager.now()
        row = (CLOCK_SET, wall, *self._last, STEP_ROWS)
        found = await pager.reading.rows(_EXPIRED, "expired delivery", _as_it_is, row)
        removed = sum(pager.remove(*values[1:]) for values in found)
        if removed:
            pager.reading.counters.add("publish/messages/expired", removed)
            pager.now()
            pager.changed()
        if len(found) < STEP_ROWS:
            pager.swept()
            return True
        # rows in memory stay, so the next step continues after them
        self._last = found[-1][:3]
        return False


class _Cut:
    """Deletes the oldest or the newest deliveries that one session has only on disk."""

    def __init__(
        self,
        pager: Pager,
        journal: "SessionJournal",
        size: int,
        dropped: Callable[[int], None],
        *,
        newest: bool,
    ) -> None:
        self._pager = pager
        self._journal = journal
        self._size = size
        self._dropped = dropped
        self._newest = newest
        self._first, self._last = 0, LAST_SEQUENCE

    async def step(self) -> bool:
        pager, newest = self._pager, self._newest
        if not self._journal.open:
            return True
        row = (self._journal.number, self._first, self._last, STEP_ROWS)
        statement = _NEWEST if newest else _OLDEST
        found = await pager.reading.rows(statement, "delivery to session", _as_it_is, row)
        removed = 0
        for values in found:
            if self._size <= 0:
                break
            messages = pager.remove(*values)
            removed += messages
            self._size -= values[3] if messages else 0
        if removed:
            self._dropped(removed)
            pager.now()
            pager.changed()
        if len(found) < STEP_ROWS or self._size <= 0:
            pager.was_cut(self._journal)
            return True
        # rows in memory stay, so the next step continues past them
        if newest:
            self._last = found[-1][1] - 1
        else:
            self._first = found[-1][1] + 1
        return False


def _as_it_is(values: Values) -> Values:
    return values
