"""The collector: a persistent session at the fleet's broker, shared with other collectors."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from pipeline.collect.broker import Broker
from pipeline.collect.landing_writer import LandingWriter
from pipeline.collect.message import Landed, read_message
from pipeline.errors import PipelineError, reason
from pipeline.place import Place
from pipeline.printable import printable

RECEIVE_MAXIMUM = 20_000
"""Messages that the broker sends before the first of them is acknowledged; it stops there."""
BYTES_MAX = 64 * 1024 * 1024
"""Bytes of payload that are gathered before a file is written, whatever its age."""
SESSION_SECONDS = 30 * 86_400
"""How long the broker keeps the session of a collector that is away."""
RETRY_SECONDS = 1.0
RECORDS = ("data/#", "batch", "clock")
LEDGERS = ("ledger",)
"""What one session gets, below a gateway's topic. Ledgers have one of their own, since each gateway
has files of its own for them: they are gathered for minutes, and acknowledgements keep the order of
the messages of a session [MQTT-4.6.0-2]."""
LEDGER_SECONDS = 300.0

VERSION_TOPIC = "$SYS/broker/version"
MOSQUITTO_KEEPS = (
    "while this collector is disconnected it stores 1,000 messages for it, or as many as its "
    "max_queued_messages says; further ones are lost here until the gateways send them again "
    "(examples/pipeline/mosquitto.conf has no limit; `ledger --recall` requests lost ones)"
)

MAY_PASS = (0x83, 0x88, 0x89, 0x97, 0x9F)
"""Refusals after which another try may succeed: a broker in trouble, busy, or at a limit."""
TAKEN_OVER = 0x8E

BRIEF_SECONDS = 5.0
BRIEF_CONNECTIONS = 5
"""So many connections in a row that the broker accepts and ends so soon without a word: two
collectors of one name take the session from each other, and Mosquitto 2.0 does not say so."""


@dataclass(frozen=True)
class CollectSettings:
    """Where messages come from, where they land, and when a file is closed."""

    broker: Broker
    landing: Place
    name: str = "collector"
    group: str = "tidegate"
    rows: int = 10_000
    seconds: float = 2.0
    suffixes: tuple[str, ...] = RECORDS

    def for_ledgers(self, seconds: float) -> "CollectSettings":
        """Return the settings of the session that gets ledgers."""
        return replace(self, name=f"{self.name}.ledger", seconds=seconds, suffixes=LEDGERS)


class Collector:
    """Gathers messages, writes them, and only then acknowledges them."""

    def __init__(self, settings: CollectSettings) -> None:
        self._settings = settings
        self._writer = LandingWriter(settings.landing, settings.name)
        self._gathered: list[tuple[MQTTMessage, Landed]] = []
        self._bytes = 0
        self._oldest = 0.0
        self._trouble = ""
        self._refusal = ""
        self._connected_at = 0.0
        self._brief = 0
        self._asked: int | None = None
        self._broker_noted = False
        self.messages = 0
        """Messages that were acknowledged."""
        self._client = self._make_client()

    def run(self, stopped: Callable[[], bool]) -> None:
        """Collect until the stop, then write and acknowledge what was gathered.

        Raises PipelineError when the broker refuses this collector for good.
        """
        self._writer.clear()
        self._connect()
        while not stopped():
            ended = self._client.loop(timeout=0.2) != MQTTErrorCode.MQTT_ERR_SUCCESS
            if self._refusal:
                self._flush()
                raise PipelineError(self._refusal)
            if ended:
                self._forget()
                known = self._brief > 1 or bool(self._trouble and not self._connected_at)
                self._pause("the connection to the broker ended", again=known)
                self._connected_at = 0.0
                self._connect(wait=False)
            if self._due():
                self._flush()
        self._flush()
        self._drain()
        self._client.disconnect()

    def _drain(self) -> None:
        """Let the acknowledgements leave."""
        while self._client.want_write():
            if self._client.loop(timeout=0.1) != MQTTErrorCode.MQTT_ERR_SUCCESS:
                return

    def _make_client(self) -> Client:
        settings = self._settings
        name = f"tidegate-collector-{settings.name}"
        client = settings.broker.client(name, manual_ack=True)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def _connect(self, *, wait: bool = True) -> None:
        session = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # not annotated
        session.SessionExpiryInterval = SESSION_SECONDS
        session.ReceiveMaximum = RECEIVE_MAXIMUM
        try:
            self._settings.broker.connect(self._client, clean_start=False, properties=session)
        except OSError as error:
            self._brief = 0
            if wait:
                self._pause(f"cannot connect to {self._settings.broker.url}: {error}")

    def _on_connect(
        self, client: Client, _data: object, _flags: object, reason: Any, _properties: object
    ) -> None:
        if reason.is_failure:
            self._refused(reason.value, f"the broker refused the connection: {reason}")
            return
        self._trouble = ""
        self._connected_at = time.monotonic()
        options = SubscribeOptions(qos=1, retainAsPublished=True)
        prefix = f"$share/{self._settings.group}/{self._settings.broker.prefix}/+/"
        suffixes = self._settings.suffixes
        _, self._asked = client.subscribe([(prefix + suffix, options) for suffix in suffixes])
        # A session of an earlier version had all of them.
        others = [suffix for suffix in (*RECORDS, *LEDGERS) if suffix not in suffixes]
        client.unsubscribe([prefix + suffix for suffix in others])
        if not self._broker_noted and suffixes == RECORDS:
            client.subscribe(VERSION_TOPIC)

    def _on_disconnect(
        self, _client: Client, _data: object, _flags: object, reason: Any, _properties: object
    ) -> None:
        brief = time.monotonic() - self._connected_at < BRIEF_SECONDS
        self._brief = self._brief + 1 if brief else 0
        if reason.value == TAKEN_OVER or self._brief == BRIEF_CONNECTIONS:
            name = self._settings.name.partition(".")[0]
            self._refusal = (
                f"another collector has taken over the session of {name!r}: "
                f"give each collector a --name of its own"
            )

    def _on_subscribe(
        self, _client: Client, _data: object, mid: object, codes: list[Any], _properties: object
    ) -> None:
        if mid != self._asked:
            return  # a broker need not show its version
        for suffix, code in zip(self._settings.suffixes, codes, strict=True):
            if code.is_failure:
                topics = f"{self._settings.broker.prefix}/+/{suffix}"
                self._refused(code.value, f"the broker refused the subscription {topics}: {code}")

    def _refused(self, code: int, text: str) -> None:
        """Note a refusal that only a person can mend; tell one that may pass."""
        if code in MAY_PASS:
            self._say(f"{text}; trying again")
        else:
            self._refusal = text

    def _on_message(self, _client: Client, _data: object, message: MQTTMessage) -> None:
        if message.topic == VERSION_TOPIC:
            self._tell_limits(message.payload.decode("utf-8", "replace"))
            return
        if not self._gathered:
            self._oldest = time.monotonic()
        received = time.time_ns() // 1_000_000
        landed = read_message(message, self._settings.broker.prefix, received)
        self._gathered.append((message, landed))
        self._bytes += len(message.payload)
        if self._full():
            self._flush()

    def _tell_limits(self, version: str) -> None:
        """Say once what Mosquitto keeps of a collector that is away; it does not tell how much."""
        if "mosquitto" in version.lower() and not self._broker_noted:
            print(f"the broker is {printable(version)}: {MOSQUITTO_KEEPS}", flush=True)
        self._broker_noted = True

    def _full(self) -> bool:
        rows = min(self._settings.rows, RECEIVE_MAXIMUM // 2)
        return len(self._gathered) >= rows or self._bytes >= BYTES_MAX

    def _due(self) -> bool:
        late = time.monotonic() - self._oldest >= self._settings.seconds
        return bool(self._gathered) and (late or self._full())

    def _flush(self) -> None:
        """Write what was gathered and acknowledge it; while the disk refuses, neither."""
        if not self._gathered:
            return
        try:
            self._writer.write(landed for _, landed in self._gathered)
        except OSError as error:
            self._oldest = time.monotonic() + RETRY_SECONDS - self._settings.seconds
            self._say(f"cannot write to {self._settings.landing}: {reason(error)}; trying again")
            return
        self._trouble = ""
        for message, _ in self._gathered:
            if message.qos:  # [MQTT-4.3.1-1]: what was sent at QoS 0 has no answer
                self._client.ack(message.mid, message.qos)
        self.messages += len(self._gathered)
        self._forget()

    def _forget(self) -> None:
        """Let go of what was gathered; what was not acknowledged comes again."""
        self._gathered.clear()
        self._bytes = 0

    def _pause(self, trouble: str, *, again: bool = False) -> None:
        """Wait before another try; the trouble was reported already if it is there `again`.

        Of two sessions that cannot reach the broker one says so.
        """
        if not again and self._settings.suffixes == RECORDS:
            self._say(f"{trouble}; trying again")
        time.sleep(RETRY_SECONDS)

    def _say(self, trouble: str) -> None:
        """Tell a trouble once, until it is over."""
        if trouble != self._trouble:
            print(f"tidegate-pipeline: {trouble}", file=sys.stderr, flush=True)
            self._trouble = trouble


def collect(settings: CollectSettings, ledger_seconds: float, stopped: Event) -> int:
    """Collect in two sessions, records and ledgers, until the stop; returns the messages.

    Raises PipelineError when the broker refuses one of them for good; then both have ended.
    """
    parts = [Collector(settings), Collector(settings.for_ledgers(ledger_seconds))]
    failed: list[PipelineError] = []

    def run(part: Collector) -> None:
        try:
            part.run(stopped.is_set)
        except PipelineError as error:
            failed.append(error)
            stopped.set()

    threads = [Thread(target=run, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(part.messages for part in parts)
