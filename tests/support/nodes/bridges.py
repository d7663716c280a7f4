"""What the application gives to a bridge, in memory and under the test's control."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.supervision.control import Control
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import (
    NodeFrames,
    PacketCounters,
    Receive,
    SeriesOwners,
    Services,
)
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.naive.matcher import matches


class Broker:
    """Takes messages while `code` says so."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.code = ReasonCode.SUCCESS
        self.commit_within: dict[str, float | None] = {}
        """The durability class of topics that have another than `commit`."""

    def publish(self, message: Message) -> ReasonCode:
        if self.code < 0x80:
            message.commit_within = self.commit_within.get(message.topic, 0.0)
            self.messages.append(message)
        return self.code

    @property
    def readings(self) -> list[tuple[str, dict[str, object]]]:
        """Topic and decoded payload of everything that was taken."""
        return [(message.topic, json.loads(message.payload)) for message in self.messages]


class Disk:
    """Keeps callbacks until the test commits, or runs them at once while `waits` is False."""

    def __init__(self) -> None:
        self.waits = False
        self._callbacks: list[Callable[[], None]] = []

    def when_on_disk(self, callback: Callable[[], None]) -> None:
        if self.waits:
            self._callbacks.append(callback)
        else:
            callback()

    def commit(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class MemoryFrames:
    """The in-memory twin of gateway.storage.state.node_frames.NodeFrames, without a window."""

    def __init__(self) -> None:
        self.remembered: list[tuple[str, int, int]] = []
        self.within: list[float | None] = []

    def seen(self, node: str, boot: int, sequence: int) -> bool:
        return (node, boot, sequence) in self.remembered

    def remember(self, node: str, boot: int, sequence: int, within: float | None = 0.0) -> None:
        self.remembered.append((node, boot, sequence))
        self.within.append(within)


class MemoryCounters:
    """The in-memory twin of gateway.storage.state.packet_counters.PacketCounters."""

    def __init__(self) -> None:
        self.remembered: dict[tuple[str, bytes], int] = {}

    def last(self, address: str, key: bytes) -> int:
        return self.remembered.get((address, key), -1)

    def remember(self, address: str, key: bytes, counter: int) -> None:
        self.remembered[address, key] = counter

    def forget(self, address: str) -> int:
        gone = [name for name in self.remembered if name[0] == address]
        for name in gone:
            del self.remembered[name]
        return len(gone)


class MemoryLabels:
    """The in-memory twin of gateway.storage.state.series_labels.SeriesLabels."""

    def __init__(self) -> None:
        self.given: dict[tuple[str, str], str] = {}

    def get(self, topic: str, source: str) -> str | None:
        return self.given.get((topic, source))

    def remember(self, topic: str, source: str, label: str) -> None:
        self.given[topic, source] = label

    def forget(self, node: str) -> int:
        gone = [key for key in self.given if key[0].startswith(f"sensors/{node}/")]
        for key in gone:
            del self.given[key]
        return len(gone)


class Alarms:
    """The alarms that are raised."""

    def __init__(self) -> None:
        self.raised: dict[str, str] = {}

    def alarm(self, name: str, text: str) -> None:
        self.raised.pop(name, None)
        if text:
            self.raised[name] = text


class Subscriptions:
    """Who receives what; `publish` is what a client does."""

    def __init__(self) -> None:
        self.receivers: list[tuple[str, Receive]] = []

    def subscribe(self, client_id: str, topic_filter: str, receive: Receive) -> Callable[[], None]:
        entry = (topic_filter, receive)
        self.receivers.append(entry)
        return lambda: self.receivers.remove(entry)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> list[ReasonCode]:
        message = Message(topic, payload, qos=1, retain=retain, client_id="somebody")
        return [
            receive(message)
            for topic_filter, receive in list(self.receivers)
            if matches(topic_filter, topic)
        ]


@dataclass
class Gateway:
    """The application's side of bridges, with what they do to it."""

    broker: Broker
    disk: Disk
    frames: NodeFrames
    counters: Counters
    clock: Clock
    alarms: Alarms
    subscriptions: Subscriptions
    retained: dict[str, bytes]
    packet_counters: PacketCounters = field(default_factory=MemoryCounters)
    series_labels: MemoryLabels = field(default_factory=MemoryLabels)
    owners: SeriesOwners = field(default_factory=SeriesOwners)
    strangers: set[str] = field(default_factory=set)
    controls: dict[str, Control] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)
    forgetters: list[Callable[[str], int]] = field(default_factory=list)

    @classmethod
    def make(cls, clock: Clock | None = None) -> "Gateway":
        return cls(
            Broker(),
            Disk(),
            MemoryFrames(),
            Counters(),
            clock or Clock(),
            Alarms(),
            Subscriptions(),
            {},
        )

    @property
    def services(self) -> Services:
        return Services(
            gateway_id="barn",
            publish=self.publish,
            subscribe=self.subscriptions.subscribe,
            retained=lambda topic_filter: [
                pair for pair in self.retained.items() if matches(topic_filter, pair[0])
            ],
            when_on_disk=self.disk.when_on_disk,
            frames=self.frames,
            packet_counters=self.packet_counters,
            series_labels=self.series_labels,
            alarm=self.alarms.alarm,
            counters=self.counters,
            clock=self.clock,
            owners=self.owners,
            strangers=self.strangers,
            controls=self.controls,
            gaps=self.gaps,
            forgetters=self.forgetters,
        )

    def publish(self, message: Message) -> ReasonCode:
        code = self.broker.publish(message)
        if code < 0x80 and message.retain:
            self.retained.pop(message.topic, None)
            if message.payload:
                self.retained[message.topic] = bytes(message.payload)
        return code

    def host(self, kind: str = "test", name: str = "b", **settings: Any) -> Host:
        return Host(kind, name, self.services, **settings)

    def figure(self, name: str) -> object:
        return self.counters.values.get(f"tidegate/{name}")
