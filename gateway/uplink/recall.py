"""Sends messages of the history again, with their original numbers."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from gateway.background import background
from gateway.counters import Counters
from gateway.errors import TidegateError
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter, topic_matches
from gateway.storage.engine.database import Database
from gateway.storage.history.history import EVER, HistoryRecall, Window
from gateway.storage.history.row import HistoryRow
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import (
    RECALL,
    OutboxRow,
)
from gateway.where.compile import Where, compile_where
from gateway.where.language.errors import WhereError

logger = logging.getLogger(__name__)


MAX_REQUEST_BYTES = 16 * 1024
"""Bytes of a request; an expression may have some thousand."""

KEYS = ("id", "stream", "epoch", "from", "to", "first", "last", "topic", "where")


MAX_RECALL_MESSAGES = 100_000
"""Maximum messages of one request; the answer says where to continue."""

MAX_WAITING = 64
"""Recalled messages in the outbox at a time: little is written twice if nobody accepts them, and a
commit that a publisher waits for has few of them."""

SLICE = 0.002
"""Seconds for which messages are evaluated before other tasks run."""

CAPACITY_SECONDS = 1.0
"""Seconds between two checks whether a full outbox has capacity."""

Report = dict[str, object]


class RecallError(TidegateError):
    """The request cannot be executed; the text says why."""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A window of the history, and its messages to send.

    `id` is the requester's own name for it.
    """

    stream: str
    window: Window
    first: int = 1
    last: int = EVER
    topic: str | None = None
    where: Where | None = None
    id: str | None = None

    def number_of(self, row: HistoryRow) -> int | None:
        """Return the number with which the message is sent again, None if it is not."""
        number = next((each.number for each in row.numbers if each.stream == self.stream), None)
        if number is None or not self.first <= number <= self.last:
            return None
        if self.topic is not None and not topic_matches(self.topic, row.message.topic):
            return None
        if self.where is not None and not self.where.passes(row.message):
            return None
        return number


def parse_request(payload: bytes) -> RecallRequest:
    """Return the request in a payload; raise RecallError."""
    if len(payload) > MAX_REQUEST_BYTES:
        raise RecallError(f"{len(payload)} bytes; a request has at most {MAX_REQUEST_BYTES}")
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise RecallError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise RecallError("a request is a JSON object")
    for key in document:
        if key not in KEYS:
            raise RecallError(f"unknown key {key!r:.40}; there are {', '.join(KEYS)}")
    return _request(document)


def _request(document: dict[str, Any]) -> RecallRequest:
    epoch = _text(document, "epoch")
    if ("first" in document or "last" in document) and epoch is None:
        raise RecallError("first and last are numbers of one epoch, which must be given")
    window = Window(_number(document, "from", 0), _number(document, "to", EVER), epoch)
    return RecallRequest(
        stream=_text(document, "stream") or "main",
        window=window,
        first=_number(document, "first", 1),
        last=_number(document, "last", EVER),
        topic=_topic(document),
        where=_where(document),
        id=_text(document, "id"),
    )


def _text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and (not isinstance(value, str) or len(value) > MAX_REQUEST_BYTES):
        raise RecallError(f"{key} is a text")
    return value


def _number(document: dict[str, Any], key: str, default: int) -> int:
    value = document.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= EVER:
        raise RecallError(f"{key} is a whole number from 0")
    return value


def _topic(document: dict[str, Any]) -> str | None:
    topic = _text(document, "topic")
    if topic is not None:
        try:
            check_topic_filter(topic)
        except MqttError as error:
            raise RecallError(f"topic {topic!r:.80}: {error.reason}") from error
    return topic


def _where(document: dict[str, Any]) -> Where | None:
    text = _text(document, "where")
    if text is None:
        return None
    try:
        return compile_where(text)
    except WhereError as error:
        raise RecallError(f"where: position {error.position}: {error.message}") from error


class Recall:
    """Copies the requested messages into the recall lane of the outbox, a few at a time.

    `history` says whether there is one. One request at a time. It ends with the links: rows that
    are in the outbox by then are sent by the next ones, the rest must be requested again. A
    recalled message evicts no other and has no expiry. Counted in `tidegate/recall/…`.
    """

    def __init__(
        self, database: Database, outbox: Outbox, counters: Counters, *, history: Callable[[], bool]
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

        The messages are sent by `uplinks`, as bits.
        """
        if not self._history():
            raise RecallError("this gateway has no history: [history] keep is 0")
        if self._task is not None:
            raise RecallError("another recall is running; try again when it has ended")
        self._counters.add("tidegate/recall/requests")
        self._counters.set("tidegate/recall/running", 1)
        self._uplinks = uplinks
        self._task = background(self._run(request, on_end))

    async def close(self) -> None:
        """Cancel a running request."""
        self._outbox.on_change.remove(self._changed.set)
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
        sent, until = 0, 0.0
        while (messages := await history.read()) is not None:
            for message in messages:
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + SLICE
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
        """Add the row once it fits; False if it does not fit into an empty outbox."""
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
    """Return the message as it is sent again: without expiry, since it was requested."""
    recalled = OutboxRow(row.message, row.epoch, stream, number, RECALL)
    recalled.message_expiry = None
    return recalled
