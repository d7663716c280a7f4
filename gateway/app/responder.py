"""Answers requests below `$CONTROL/tidegate/` on their Response Topic."""

import asyncio
import json
import logging
import math
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from typing import TypeAlias, TypeVar

from gateway.access.rule import WRITE
from gateway.app.control import Control
from gateway.app.parts import Core, Run
from gateway.broker.own_names import CONTROL_CLIENT
from gateway.mqtt.errors import MqttError, ProtocolError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_topic_name

logger = logging.getLogger(__name__)

ANSWERS = "$CONTROL/answers/"
"""Prefix of Response Topics that only operators read, and no client may publish to."""

QUERY = "query"
"""The part of `$CONTROL/tidegate/` with the queries."""

MAXIMUM_WAITING = 32
"""Requests that are running or wait; one more is refused with 0x97."""

MAXIMUM_REFUSED = 1_000
"""Refused requests that wait for an answer with the reason; further ones only get their PUBACK."""

LINE_SECONDS = 1.0
"""Seconds between two log lines about requests that cannot be answered."""

MAXIMUM_REQUEST = 16 * 1024
"""Bytes of a query's payload."""

MAXIMUM_ANSWER = 64 * 1024
"""Bytes of the rows in one answer; the next page begins with those that did not fit."""

MAXIMUM_LIMIT, DEFAULT_LIMIT = 500, 100
"""Rows of one page."""

MAXIMUM_OFFSET = 10_000_000
"""Rows before a page."""

SLICE = 0.002
"""Seconds for which a query runs before others get a turn."""

SHOWN = 80
"""Characters of a request that an error repeats."""

Answer: TypeAlias = Mapping[str, object]
Reply: TypeAlias = Callable[[Answer], None]
T = TypeVar("T")


class RequestError(ValueError):
    """A request that cannot be executed; the text says why."""


class Request:
    """One query: a JSON object whose keys are read by name, and its slice of time.

    Each reader raises RequestError that names the key, its value and what is allowed.
    """

    def __init__(self, what: str, reported: dict[str, object], client_id: str, turn: asyncio.Lock):
        self.what = what
        self.client_id = client_id
        self._reported = reported
        self._turn = turn
        self._until = 0.0

    def check_keys(self, *known: str) -> None:
        """Raise RequestError for a key that the query does not have."""
        for key in self._reported:
            if key not in known:
                allowed = ", ".join(known) or "none"
                raise RequestError(f"unknown key {key[:SHOWN]!r}; {self.what} has: {allowed}")

    def text(self, key: str) -> str | None:
        """Return a text, None if the request has none."""
        value = self._reported.get(key)
        if value is not None and not isinstance(value, str):
            raise RequestError(f"{key} is {_shown(value)}, not a text")
        return value

    def needed(self, key: str) -> str:
        """Return a required text."""
        value = self.text(key)
        if value is None:
            raise RequestError(f"{self.what} needs {key}, a text")
        return value

    def word(self, key: str, words: tuple[str, ...]) -> str:
        """Return one of some words, the first if the request has none."""
        value = self.text(key)
        if value is None:
            return words[0]
        if value not in words:
            raise RequestError(f"{key} is {_shown(value)}, not one of {', '.join(words)}")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false, false if the request has none."""
        value = self._reported.get(key, False)
        if not isinstance(value, bool):
            raise RequestError(f"{key} is {_shown(value)}, not true or false")
        return value

    def table(self, key: str) -> dict[str, object]:
        """Return an object, an empty one if the request has none."""
        value = self._reported.get(key, {})
        if not isinstance(value, dict):
            raise RequestError(f"{key} is {_shown(value)}, not an object")
        return value

    def whole(self, key: str, least: int, most: int, default: int) -> int:
        """Return a whole number."""
        value = self._reported.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise RequestError(f"{key} is {_shown(value)}, not a whole number {least} to {most}")
        return value

    def seconds(self, key: str, most: float) -> float:
        """Return a number of seconds, 0 if the request has none."""
        value = self._reported.get(key, 0)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise RequestError(f"{key} is {_shown(value)}, not a number of seconds 0 to {most:g}")
        return value

    async def breathe(self) -> None:
        """Let others have a turn if this query has used up its slice of time."""
        if perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + SLICE

    async def sleep(self, seconds: float) -> None:
        """Wait, while other queries are answered."""
        await self.wait_for(asyncio.sleep(seconds))

    async def wait_for(self, work: Awaitable[T]) -> T:
        """Wait for the result of long work, while other queries are answered."""
        self._turn.release()
        try:
            return await work
        finally:
            await self._turn.acquire()

    @property
    def window(self) -> tuple[int, int]:
        """The offset of the requested page, and its most rows."""
        limit = self.whole("limit", 1, MAXIMUM_LIMIT, DEFAULT_LIMIT)
        return self.whole("offset", 0, MAXIMUM_OFFSET, 0), limit

    async def page(
        self, names: Sequence[T], row: Callable[[T], Answer | None], total: int | None = None
    ) -> dict[str, object]:
        """Return the rows of the requested page, with `total` and the beginning of the `next`.

        What was removed meanwhile has no row. With a `total`, `names` are only those of the page.
        """
        offset, limit = self.window
        skipped = 0 if total is None else offset
        total = len(names) if total is None else total
        end = min(skipped + len(names), offset + limit)
        rows: list[object] = []
        size, position = 0, offset
        while position < end:
            await self.breathe()
            made = row(names[position - skipped])
            if made is not None:
                size += len(to_json(made))
                if rows and size > MAXIMUM_ANSWER:
                    break
                rows.append(made)
            position += 1
        more = {"next": position} if position < total else {}
        return {"total": total, "offset": offset, "rows": rows, **more}


Handler: TypeAlias = Callable[[Request], Awaitable[Answer]]


class Responder:
    """Answers requests one at a time, each in slices of time, and a bounded number of them.

    Counted in `tidegate/queries/…`.
    """

    def __init__(self, run: Run, core: Core, control: Control) -> None:
        self._core = core
        self._clock = run.clock
        self._counters = run.counters
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._handlers: dict[str, tuple[Handler, tuple[str, ...]]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._refused: deque[tuple[Reply, Answer]] = deque()
        self._next_line = -math.inf
        self._omitted = 0  # lines since the last one
        control.answer_below(QUERY, self.receive)
        run.stack.push_async_callback(self.close)

    async def close(self) -> None:
        """Cancel a running request; what was not done stays as it is."""
        tasks = [*self._tasks, *self._others]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def know(self, what: str, handler: Handler, *keys: str) -> None:
        """Answer `query/<what>` with the handler's result; requests have these keys."""
        self._handlers[what] = handler, keys

    def reply_to(self, message: Message) -> Reply:
        """Return a function that answers a request; raise MqttError if no answer is possible.

        That includes a topic that the client itself may not write, such as a disconnected will's.
        """
        topic, correlation_data = message.response_topic, message.correlation_data
        if topic is None:
            raise ProtocolError("there is no Response Topic", ReasonCode.TOPIC_NAME_INVALID)
        check_topic_name(topic)
        if not topic.startswith(ANSWERS):
            if topic.startswith("$"):
                reason = f"begins with $, and not with {ANSWERS}"
                raise ProtocolError(reason, ReasonCode.TOPIC_NAME_INVALID)
            session = self._core.broker.sessions.get(message.client_id or "")
            if session is None or not session.granted.rights(topic) & WRITE:
                raise ProtocolError("the client may not write it", ReasonCode.NOT_AUTHORIZED)
        return lambda answer: self._publish(topic, answer, correlation_data)

    def accept(self, serve: Callable[[], Coroutine[object, object, None]]) -> ReasonCode:
        """Have a request served in its turn; return 0x97 if too many wait."""
        if len(self._tasks) >= MAXIMUM_WAITING:
            self._counters.add("tidegate/queries/refused")
            return ReasonCode.QUOTA_EXCEEDED
        task = asyncio.get_running_loop().create_task(self._in_turn(serve))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ReasonCode.SUCCESS

    async def _in_turn(self, serve: Callable[[], Coroutine[object, object, None]]) -> None:
        async with self._turn:
            await serve()

    def receive(self, what: str, message: Message) -> ReasonCode:
        """Accept `query/<what>`; a refusal is answered as well, if possible."""
        try:
            reply = self.reply_to(message)
        except MqttError as error:
            self._counters.add("tidegate/queries/refused")
            self._warn(what, message, error)
            return error.reason_code
        try:
            request = self._request(what, message)
        except RequestError as error:
            self._counters.add("tidegate/queries/refused")
            code, text = ReasonCode.PAYLOAD_FORMAT_INVALID, str(error)
        else:
            code = self.accept(lambda: self._serve(request, reply))
            text = f"{MAXIMUM_WAITING} requests wait already; try again later"
            if code == ReasonCode.SUCCESS:
                return code
        self._refuse(reply, {"query": what[:SHOWN], "error": text})
        return code

    def _warn(self, what: str, message: Message, error: MqttError) -> None:
        """Log a request that cannot be answered, unless there was a line just now."""
        now = self._clock.monotonic()
        if now < self._next_line:
            self._omitted += 1
            return
        more = f" ({self._omitted:,} more since the last line)" if self._omitted else ""
        line = "query %.80r of client %.80r: response topic %.80r: %s%s"
        logger.warning(line, what, message.client_id, message.response_topic, error.reason, more)
        self._next_line, self._omitted = now + LINE_SECONDS, 0

    def _refuse(self, reply: Reply, answer: Answer) -> None:
        """Have a refused request answered, after its own publishing."""
        if len(self._refused) >= MAXIMUM_REFUSED:
            self._counters.add("tidegate/queries/unanswered")
            return
        self._refused.append((reply, answer))
        if not self._others:
            task = asyncio.get_running_loop().create_task(self._answer_refused())
            self._others.add(task)
            task.add_done_callback(self._others.discard)

    async def _answer_refused(self) -> None:
        until = perf_counter() + SLICE
        while self._refused:
            reply, answer = self._refused.popleft()
            reply(answer)
            if perf_counter() >= until:
                await asyncio.sleep(0)
                until = perf_counter() + SLICE

    def _request(self, what: str, message: Message) -> Request:
        if what not in self._handlers:
            known = ", ".join(sorted(self._handlers))
            raise RequestError(f"there is no query {what[:SHOWN]!r}; there are: {known}")
        size = len(message.payload)
        if size > MAXIMUM_REQUEST:
            raise RequestError(f"{size} bytes; a request has at most {MAXIMUM_REQUEST}")
        try:
            reported = json.loads(message.payload or b"{}")
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the request is no JSON: {error}") from None
        if not isinstance(reported, dict):
            raise RequestError("a request is a JSON object")
        request = Request(what, reported, message.client_id or "", self._turn)
        request.check_keys(*self._handlers[what][1])
        return request

    async def _serve(self, request: Request, reply: Reply) -> None:
        begin = {"query": request.what, "time": self._clock.wall_ms()}
        handler, _ = self._handlers[request.what]
        name = "tidegate/queries/answered"
        try:
            answer = {**begin, **await handler(request)}
        except RequestError as error:
            name, answer = "tidegate/queries/refused", {**begin, "error": str(error)}
        except sqlite3.Error as error:
            answer = {**begin, "error": f"the database could not be read: {error}"}
        self._counters.add(name)
        reply(answer)

    def _publish(self, topic: str, answer: Answer, correlation_data: bytes | None) -> None:
        instant = self._core.turn.instant
        message = Message(
            topic,
            to_json(answer),
            qos=1,
            client_id=CONTROL_CLIENT,
            received_at=instant.wall,
            arrived=instant.monotonic,
            correlation_data=correlation_data,
            content_type="application/json",
        )
        self._core.publish(message)


def to_json(answer: Answer) -> bytes:
    """Return the payload of an answer."""
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
