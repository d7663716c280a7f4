"""What goes out in runs at QoS 1 and 2 is what went out without, whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)
from tests.support.broker_harness import Harness
from tests.support.counted_rows import everything_is_counted
from tests.support.durable_broker import DurableHarness
from tests.support.memory_client import MemoryClient
from tests.support.numbered_runs import PASS_ON, PASS_ON_AGAIN, TAKE_ALONE, TAKE_RUN
from tests.support.queues import messages

QOS = st.sampled_from([0, 1, 1, 1, 2, 2])
SIZES = st.sampled_from([0, 1, 1, 1, 2, 130])
MESSAGES = st.tuples(st.sampled_from(["a/b", "a/b", "a/c", "x"]), QOS, SIZES, st.integers(1, 5))
NAMES = ("one", "two", "three", "first", "second")


class Scene:
    """Two publishers and three subscribers, driven by drawn steps; all that is sent is noted."""

    def __init__(self, harness: Harness, steps: list[Any]) -> None:
        self.harness = harness
        self.heard: list[tuple[str, Packet]] = []
        self.clients: dict[str, MemoryClient] = {}
        self.owed: dict[str, list[Packet]] = {name: [] for name in NAMES}
        self.slow: set[str] = set()  # publishers that answer when they are told to
        self.numbers = {"first": 0, "second": 0}
        self.away: set[str] = set()
        self.come("one", MQTT_3_1_1, "#")
        self.come("two", MQTT_5, "a/#")
        self.come("three", MQTT_5, "a/b")
        self.clients["first"] = harness.connect("first", MQTT_3_1_1)
        self.clients["second"] = harness.connect("second", MQTT_5)
        for step in steps:
            getattr(self, step[0])(*step[1:])
            self.look()

    def come(self, name: str, version: int, topic_filter: str) -> None:
        client = self.clients[name] = self.harness.persistent(name, version)
        client.subscribe(topic_filter, {"one": 2, "two": 1, "three": 2}[name])

    def publish(self, name: str, messages: list[tuple[str, int, int, int]]) -> None:
        packets = []
        for topic, qos, size, times in messages:
            for _ in range(times):
                self.numbers[name] = number = self.numbers[name] % 3_000 + 1
                packets.append(
                    Publish(topic, b"%d" % (number % 10) * size, qos, packet_id=number * (qos > 0))
                )
        self.clients[name].send(*packets)

    def acknowledge(self, name: str, count: int, skip: int) -> None:
        owed = self.owed[name]
        if name in self.away:
            return
        answers = owed[skip : skip + count]
        del owed[skip : skip + count]
        self.clients[name].send(*answers)

    def take_time(self, name: str) -> None:
        """Let a publisher answer by itself no more, or again."""
        self.slow ^= {name}

    def leave(self, name: str, stays_away: bool) -> None:
        """Go, or come back from an earlier time, and come again at once or not."""
        version = self.clients[name].version
        if name not in self.away:
            self.clients[name].drop()
        self.owed[name] = []
        if stays_away:
            self.away.add(name)
            return
        self.away.discard(name)
        self.come(name, version, {"one": "#", "two": "a/#", "three": "a/b"}[name])

    def look(self) -> None:
        for name, client in self.clients.items():
            for packet in client.take():
                self.heard.append((name, packet))
                if isinstance(packet, PubRec):
                    self.owed[name].append(PubRel(packet.packet_id))
                elif isinstance(packet, PubRel):
                    self.owed[name].append(PubComp(packet.packet_id))
                elif isinstance(packet, Publish) and packet.qos:
                    kind = PubAck if packet.qos == 1 else PubRec
                    self.owed[name].append(kind(packet.packet_id))
            if self.owed[name] and name in ("first", "second") and name not in self.slow:
                answers, self.owed[name] = self.owed[name], []
                client.send(*answers)


STEPS = st.one_of(
    st.tuples(
        st.just("publish"),
        st.sampled_from(["first", "second"]),
        st.lists(MESSAGES, min_size=1, max_size=6),
    ),
    st.tuples(
        st.just("acknowledge"),
        st.sampled_from(NAMES),
        st.integers(1, 20),
        st.sampled_from([0, 0, 0, 0, 1]),
    ),
    st.tuples(st.just("take_time"), st.sampled_from(["first", "second"])),
    st.tuples(st.just("leave"), st.sampled_from(["one", "two", "three"]), st.booleans()),
)


@contextmanager
def without_runs() -> Iterator[None]:
    """Let every packet be handled by itself."""
    with (
        mock.patch(PASS_ON, return_value=False),
        mock.patch(PASS_ON_AGAIN, return_value=False),
        mock.patch(TAKE_RUN, return_value=False),
        mock.patch(TAKE_ALONE, return_value=0),
    ):
        yield


@pytest.mark.parametrize("make", [Harness, DurableHarness])
@given(steps=st.lists(STEPS, max_size=25))
def test_everyone_hears_the_same_as_without_runs(
    make: Callable[[BrokerSettings], Harness], steps: list[Any]
) -> None:
    settings = BrokerSettings(maximum_inflight=40)
    with_runs = Scene(make(settings), steps)
    with without_runs():
        without = Scene(make(settings), steps)
    assert with_runs.heard == without.heard
    for name in ("one", "two", "three"):
        assert len(with_runs.harness.session(name).inflight) == len(
            without.harness.session(name).inflight
        )
    memory, other = with_runs.harness.broker.queue_memory, without.harness.broker.queue_memory
    assert memory.deliveries == other.deliveries
    assert memory.bytes >= other.bytes  # what one gets as a run and another not is there twice


@given(steps=st.lists(STEPS, max_size=25))
def test_a_crash_leaves_the_same_as_without_runs(steps: list[Any]) -> None:
    left = []
    for how in (nullcontext, without_runs):
        with how():
            harness = DurableHarness()
            Scene(harness, steps)
            harness.disk.commit()
        everything_is_counted(harness)
        harness.crash()
        left.append(
            [
                [(each.delivery.message.payload, each.released) for each in session.inflight]
                + [(each.payload, False) for each in messages(session.queue)]
                for session in harness.broker.sessions.values()
            ]
        )
    assert left[0] == left[1]
