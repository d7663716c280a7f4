"""Asks gateways for missing messages and watches them arrive.

docs/understand/fleet-interface.md, "Recall", has the messages.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from pipeline.collect.broker import Broker
from pipeline.collect.message import read_message
from pipeline.errors import PipelineError
from pipeline.printable import printable
from pipeline.records.record import Values
from pipeline.settings import Watch, unwatched

ANSWER_SECONDS = 60.0
"""How long a gateway may be silent until it counts as one that does not answer."""


Stream = tuple[str, str, str]
"""Gateway, epoch and stream."""


class Wanted(NamedTuple):
    """Numbers of a stream that are to come again."""

    gateway: str
    epoch: str
    stream: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.gateway}/{self.epoch}/{self.stream} numbers {self.first} to {self.last}"


@dataclass
class _Asked:
    """What one gateway was asked, and what it is still to be asked."""

    waiting: deque[Wanted]
    now: Wanted | None = None
    heard: float = 0.0


@dataclass
class Recalled:
    """What came of it."""

    messages: int = 0
    """Messages that gateways put into their outboxes."""
    arrived: int = 0
    """Those of the ranges that arrived at the broker meanwhile, each once."""
    failed: list[str] = field(default_factory=list)
    """Ranges that do not come, and why."""


class Recall:
    """Asks until each range was answered, and watches until what was promised has arrived.

    A gateway that is silent for too long ends either.
    """

    def __init__(
        self,
        broker: Broker,
        wanted: Iterable[Wanted],
        say: Callable[[str], None],
        watch: Watch = unwatched,
    ) -> None:
        self._broker = broker
        self._say = say
        self._refusal = ""
        self._watch = watch
        self._gateways: dict[str, _Asked] = {}
        self._ranges: dict[Stream, list[Wanted]] = {}
        for each in wanted:
            self._gateways.setdefault(each.gateway, _Asked(deque())).waiting.append(each)
            self._ranges.setdefault(each[:3], []).append(each)
        self._asked = sorted(self._gateways)
        self._arrived: set[tuple[Stream, int]] = set()
        self._heard = time.monotonic()
        self.done = Recalled()
        self._client = broker.client("")
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message

    def run(self, seconds: float = ANSWER_SECONDS) -> Recalled:
        """Ask for everything, and watch it arrive; a gateway may be silent for so many seconds.

        Raises PipelineError when the broker refuses, or the connection ends.
        """
        url = self._broker.url
        try:
            self._broker.connect(self._client)
        except OSError as error:
            raise PipelineError(f"cannot connect to {url}: {error}") from None
        while self._gateways or self._is_expecting(time.monotonic() - seconds):
            ended = self._client.loop(timeout=0.2) != MQTTErrorCode.MQTT_ERR_SUCCESS
            if self._refusal or ended:
                raise PipelineError(self._refusal or f"the connection to {url} ended")
            self._give_up(time.monotonic() - seconds)
        self._client.disconnect()
        return self.done

    def _is_expecting(self, since: float) -> bool:
        """Say whether promised messages have not arrived, and something arrived since then."""
        return self.done.arrived < self.done.messages and self._heard > since

    def _on_connect(
        self, client: Client, _data: object, _flags: object, reason: Any, _properties: object
    ) -> None:
        if reason.is_failure:
            self._refusal = f"the broker refused the connection: {reason}"
            return
        own = [f"{self._broker.prefix}/{gateway}" for gateway in self._asked]
        data = [f"{place}/{kind}" for place in own for kind in ("data/#", "batch")]
        topics = [f"{self._broker.prefix}/+/recall", *data]
        client.subscribe([(topic, SubscribeOptions(qos=1)) for topic in topics])

    def _on_subscribe(
        self, _client: Client, _data: object, _mid: object, codes: list[Any], _properties: object
    ) -> None:
        if codes[0].is_failure:
            self._refusal = f"the broker refused to show the answers of gateways: {codes[0]}"
            return
        if any(code.is_failure for code in codes[1:]):
            self._say("the broker does not show the messages of all gateways, so some go unseen")
        for gateway in list(self._gateways):
            self._ask(gateway)

    def _ask(self, gateway: str) -> None:
        """Ask a gateway for the next range; one that has no other is done."""
        asked = self._gateways[gateway]
        if not asked.waiting:
            del self._gateways[gateway]
            return
        asked.now, asked.heard = asked.waiting.popleft(), time.monotonic()
        request = asked.now._asdict() | {"id": _id(asked.now)}
        del request["gateway"]
        topic = f"{self._broker.prefix}/{gateway}/control/recall"
        self._client.publish(topic, json.dumps(request), qos=1)

    def _on_message(self, _client: Client, _data: object, message: MQTTMessage) -> None:
        if not message.topic.endswith("/recall"):
            self._note(message)
            return
        gateway = message.topic.split("/")[-2]
        asked = self._gateways.get(gateway)
        answer = _answer(bytes(message.payload))
        if asked is None or asked.now is None or answer.get("id") != _id(asked.now):
            return
        asked.heard = time.monotonic()
        match answer.get("state"):
            case "refused":
                self._fail(asked.now, f"the gateway refuses: {answer.get('error')}")
                self._ask(gateway)
            case "done":
                self._end(asked, answer)
                self._ask(gateway)

    def _note(self, message: MQTTMessage) -> None:
        """Count those numbers in a message that were asked for."""
        self._heard = time.monotonic()
        for record in read_message(message, self._broker.prefix, 0).records:
            stream, number = _key(record)
            if any(each.first <= number <= each.last for each in self._ranges.get(stream, ())):
                self._arrived.add((stream, number))
        self.done.arrived = len(self._arrived)
        self._watch("arriving", self.done.arrived, max(self.done.messages, self.done.arrived))

    def _end(self, asked: _Asked, answer: dict[str, Any]) -> None:
        """Take the last answer to a request; the gateway sends a bounded number at once."""
        assert asked.now is not None  # noqa: S101 - the caller looked
        messages = answer.get("messages")
        count = messages if isinstance(messages, int) else 0
        self.done.messages += count
        self._say(f"{asked.now}: {count:,} messages are on their way")
        reached = answer.get("reached")
        last = reached.get("number") if isinstance(reached, dict) else None
        if answer.get("complete") is False and isinstance(last, int) and last >= asked.now.first:
            asked.waiting.appendleft(asked.now._replace(first=last + 1))
        elif not count:
            self._fail(asked.now, "the gateway's history has none of them")

    def _give_up(self, since: float) -> None:
        for gateway, asked in list(self._gateways.items()):
            if asked.now is not None and asked.heard < since:
                for each in (asked.now, *asked.waiting):
                    self._fail(each, "the gateway does not answer")
                del self._gateways[gateway]

    def _fail(self, wanted: Wanted, why: str) -> None:
        failure = printable(f"{wanted}: {why}")
        self.done.failed.append(failure)
        self._say(failure)


def _key(record: Values) -> tuple[Stream, int]:
    """Return the stream and the number of a record's fields."""
    gateway, epoch, stream, number = record[:4]
    return (str(gateway), str(epoch), str(stream)), int(str(number))


def _id(wanted: Wanted) -> str:
    return f"{wanted.epoch}.{wanted.stream}.{wanted.first}-{wanted.last}"


def _answer(payload: bytes) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
