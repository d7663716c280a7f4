"""A command's request to a running gateway: a message below `$CONTROL/tidegate/`."""

import json
import queue
import threading
import uuid
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError
from gateway.mqtt.reason_codes import ReasonCode

CONTROL = "$CONTROL/tidegate/"
ANSWERS = "$CONTROL/answers/"
ANSWER_TIMEOUT = 10.0
"""Seconds to wait for the gateway's answer."""

REASON_SECONDS = 0.5
"""Seconds after a refusal to wait for the answer with the reason."""

PAGE = 500
"""Rows of one answer, at most."""


def ask_gateway(
    broker: LocalBroker,
    part: str,
    payload: str,
    refused: str,
    *,
    reason: str = "its log has the reason",
) -> None:
    """Publish a request and wait for its PUBACK.

    Raise TidegateError with `refused` and the reason code; `reason` stands for 0x83.
    """
    answered = threading.Event()
    problems = []

    def on_connect(client: paho.Client, _data: Any, _flags: Any, code: Any, _more: Any) -> None:
        if code.is_failure:
            on_publish(client, _data, 0, code, _more)
        else:
            client.publish(CONTROL + part, payload, qos=1)

    def on_publish(_client: paho.Client, _data: Any, _mid: int, code: Any, _more: Any) -> None:
        if code.value == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR:
            problems.append(reason)
        elif code.is_failure:
            problems.append(str(code))
        answered.set()

    client = broker.connect()
    client.on_connect = on_connect
    client.on_publish = on_publish
    client.loop_start()
    if not answered.wait(ANSWER_TIMEOUT):
        problems.append(f"no answer within {ANSWER_TIMEOUT:.0f} s")
    client.disconnect()
    client.loop_stop()
    if problems:
        raise TidegateError(f"the gateway at {broker.name} {refused}: {problems[0]}")


class Conversation:
    """A connection for requests to a running gateway and their answers, one at a time.

    A refusal, and a missing answer, is raised as TidegateError.
    """

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._topic = ANSWERS + uuid.uuid4().hex
        self._received: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._subscribed = False
        self._client = broker.connect()
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_publish = self._on_publish
        self._client.on_message = self._on_message

    def __enter__(self) -> Self:
        self._client.loop_start()
        try:
            self._next()  # the SUBACK
        except BaseException:
            self._client.loop_stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def query(
        self, what: str, request: Mapping[str, object], seconds: float = ANSWER_TIMEOUT
    ) -> dict[str, Any]:
        """Return the answer to a query, which may take this long."""
        self._send(f"query/{what}", request)
        return self._next(seconds)

    def rows(self, what: str, request: Mapping[str, object], most: int) -> list[dict[str, Any]]:
        """Return the rows of all pages, up to `most`."""
        found: list[dict[str, Any]] = []
        offset: int | None = 0
        while offset is not None and len(found) < most:
            limit = min(PAGE, most - len(found))
            page = self.query(what, {**request, "offset": offset, "limit": limit})
            found += page["rows"]
            offset = page.get("next")
        return found

    def answers(self, part: str, request: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        """Yield answers until the one that is `done`."""
        self._send(part, request)
        while True:
            answer = self._next()
            yield answer
            if "done" in answer:
                return

    def _send(self, part: str, request: Mapping[str, object]) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # paho has no type
        properties.ResponseTopic = self._topic
        self._client.publish(CONTROL + part, json.dumps(request), qos=1, properties=properties)

    def _next(self, seconds: float = ANSWER_TIMEOUT) -> dict[str, Any]:
        try:
            answer = self._received.get(timeout=seconds)
            if "code" in answer:
                answer = self._reason(answer["code"])
        except queue.Empty:
            silence = f"the gateway at {self._broker.name} did not answer within {seconds:.0f} s"
            raise TidegateError(silence) from None
        if "error" in answer:
            raise TidegateError(f"the gateway at {self._broker.name} refused: {answer['error']}")
        return answer

    def _reason(self, code: str) -> dict[str, Any]:
        """Return the answer with the reason of a refusal, or the code if none arrives."""
        try:
            return self._received.get(timeout=REASON_SECONDS)
        except queue.Empty:
            return {"error": code}

    def _on_connect(
        self, client: paho.Client, _data: object, _flags: object, code: Any, _more: object
    ) -> None:
        if code.is_failure:
            self._received.put({"error": str(code)})
        else:
            client.subscribe(self._topic, 1)

    def _on_subscribe(
        self, _client: paho.Client, _data: object, _mid: int, codes: Any, _more: object
    ) -> None:
        if not self._subscribed:  # otherwise the connection was lost meanwhile, and is back
            self._subscribed = not codes[0].is_failure
            self._received.put({} if self._subscribed else {"error": str(codes[0])})

    def _on_publish(
        self, _client: paho.Client, _data: object, _mid: int, code: Any, _more: object
    ) -> None:
        if code.is_failure:
            self._received.put({"code": str(code)})

    def _on_message(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        self._received.put(json.loads(message.payload))
