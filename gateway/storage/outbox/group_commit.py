"""When rows that must be written are committed: together with those that come soon after."""

import asyncio
import math

from gateway.storage.engine.writer import Writer

GROUP_SECONDS = 0.25
"""Seconds from one commit of rows to the next at most, while rows keep coming."""

GROUP_ROWS = 256
"""Rows with which a commit begins at once."""

QUIET_SECONDS = 0.02
"""Seconds without a row after which a commit waits for no more: their publishers wait for it."""

QUIET_GAPS = 8
"""The same as a multiple of the time between rows, if that is less: fast publishers stop sooner."""


class GroupCommit:
    """Says for how long the commit of a row may wait for others.

    A card wears by commits more than by rows: one of a single row writes some ninety times its
    payload, one of two hundred rows four times. The first row after a pause is committed at once.
    """

    __slots__ = ("_batch", "_closed", "_committed", "_last", "_quiet", "_rows", "_timer", "_writer")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._batch = 0  # to which the rows belong that are counted
        self._rows = 0
        self._last = 0.0  # when the last row came
        self._closed = -math.inf  # when the last batch with such rows was
        self._committed = 0.0  # when publishers had their answers
        self._quiet = QUIET_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        writer.before_batch.append(self._close)
        writer.on_committed.append(self._note_commit)

    def within(self) -> float:
        """Return in how many seconds at most the commit of one more row has to begin."""
        loop = asyncio.get_running_loop()
        self._last = now = loop.time()
        if self._batch != self._writer.batch:
            self._batch, self._rows = self._writer.batch, 0
        self._rows += 1
        left = self._closed + GROUP_SECONDS - now
        if left <= 0.0 or self._rows >= GROUP_ROWS:
            return 0.0
        if self._timer is None:
            self._timer = loop.call_at(now + self._quiet, self._look)
        return left

    def _close(self) -> None:
        """Learn from a batch that is closed how fast its rows came once publishers could send."""
        if self._batch == self._writer.batch:
            self._closed = asyncio.get_running_loop().time()
            gap = max(0.0, self._last - self._committed) / self._rows
            self._quiet = min(QUIET_SECONDS, QUIET_GAPS * gap)

    def _note_commit(self, _: int) -> None:
        self._committed = asyncio.get_running_loop().time()

    def _look(self) -> None:
        """Have the batch committed if no row has come for a while, or look again."""
        self._timer = None
        if self._batch != self._writer.batch:  # it was closed
            return
        loop = asyncio.get_running_loop()
        if loop.time() < (quiet_at := self._last + self._quiet):
            self._timer = loop.call_at(quiet_at, self._look)
        else:
            self._writer.schedule_commit(0.0)
            self._writer.hand_over()
