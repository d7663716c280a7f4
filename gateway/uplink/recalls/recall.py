"""Sends messages of the history again, under their original numbers."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.counters import Counters
from gateway.storage.engine.database import Database
from gateway.storage.history.recall import HistoryRecall
from gateway.storage.history.row import HistoryRow
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import (
    RECALL,
    OutboxRow,
    row_of_message,
)
from gateway.uplink.recalls.request import RecallError, RecallRequest

logger = logging.getLogger(__name__)

MAX_RECALL_MESSAGES = 100_000
"""Maximum messages of one request; the answer says where to continue."""

MAX_WAITING = 256
"""Recalled messages in the outbox at a time: little is written twice when nobody takes them."""

CAPACITY_SECONDS = 1.0
"""Seconds between two checks whether a full outbox has room."""

Report = dict[str, object]


class Recall:
    """Copies the requested messages into the recall lane of the outbox, a few at a time.

    One request at a time. It ends with the gateway: what is in the outbox by then goes up after
    the next start, the rest has to be asked for again. A recalled message takes nobody's room
    and has no expiry. Counted in `tidegate/recall/…`.
    """

    def __init__(
        self, database: Database, outbox: Outbox, counters: Counters, *, history: bool
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._counters = counters
        self._history = history
        self._uplinks = 1
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        outbox.on_change.append(self._changed.set)
        for name in ("requests", "refused", "messages"):
            counters.set(f"tidegate/recall/{name}", 0)
        counters.set("tidegate/recall/running", 0)

    def begin(
        self, request: RecallRequest, on_end: Callable[[Report], None], uplinks: int = 1
    ) -> None:
        """Start a request and call `on_end` with its result; raise RecallError.

        The messages go up by `uplinks`, as bits.
        """
        if not self._history:
            raise RecallError("this gateway keeps no history: [history] keep is 0")
        if self._task is not None:
            raise RecallError("another recall is running; ask again when it has ended")
        self._counters.add("tidegate/recall/requests")
        self._counters.set("tidegate/recall/running", 1)
        self._uplinks = uplinks
        self._task = asyncio.get_running_loop().create_task(self._run(request, on_end))

    async def close(self) -> None:
        """Cancel a running request."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, request: RecallRequest, on_end: Callable[[Report], None]) -> None:
        report: Report = {"state": "done", "messages": 0, "complete": True}
        try:
            await self._copy(request, report)
        except sqlite3.Error as error:
            logger.warning("a recall ended: the history could not be read: %s", error)
            report |= {"state": "failed", "complete": False, "error": str(error)}
        finally:
            self._task = None
            self._counters.set("tidegate/recall/running", 0)
        logger.info("a recall of stream %r ended: %s", request.stream, report)
        on_end(report)

    async def _copy(self, request: RecallRequest, report: Report) -> None:
        history = HistoryRecall(self._database, request.window)
        sent = 0
        while (messages := await history.read()) is not None:
            for message in messages:
                number = request.number_of(message)
                if number is None:
                    continue
                if sent >= MAX_RECALL_MESSAGES:
                    report["complete"] = False
                    return
                if not await self._add(recalled_row(message, request.stream, number)):
                    report["complete"] = False
                    continue
                sent += 1
                report["messages"] = sent
                report["reached"] = {
                    "epoch": message.epoch,
                    "number": number,
                    "time": message.message.received_at,
                }

    async def _add(self, row: OutboxRow) -> bool:
        """Add the row once there is room; False if an empty outbox has too little."""
        while self._outbox.recalled >= MAX_WAITING or not self._outbox.fits(row):
            if self._outbox.rows == 0 and not self._outbox.fits(row):
                return False
            self._changed.clear()
            try:
                async with asyncio.timeout(CAPACITY_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                continue  # space becomes free without a commit, too
        row.uplinks = self._uplinks
        self._outbox.add(row)
        self._outbox.end_turn()
        self._counters.add("tidegate/recall/messages")
        return True


def recalled_row(row: HistoryRow, stream: str, number: int) -> OutboxRow:
    """Return the message as it goes up again: without expiry, since somebody asked for it."""
    recalled = row_of_message(row.message, row.epoch, stream, number, RECALL)
    recalled.message_expiry = None
    return recalled
