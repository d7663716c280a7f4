"""When a will is published, and when not."""

from dataclasses import replace

import pytest

from gateway.mqtt.packets import ConnAck, Connect, Disconnect, Publish, Will, message_size
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.memory_client import MemoryClient

GONE = Publish("wills/c", b"gone")


def will(delay: int | None = None) -> Will:
    return Will("wills/c", b"gone", properties=Properties(will_delay_interval=delay))


@pytest.fixture
def watcher(harness: Harness) -> MemoryClient:
    client = harness.connect("watcher")
    client.subscribe("wills/+", retain_as_published=True)
    return client


def test_a_will_whose_delay_was_over_is_not_called_off_before_the_timer_has_run(
    harness: Harness, watcher: MemoryClient
) -> None:
    harness.persistent(will=will(delay=30)).drop()
    harness.now += 30  # as on a machine that stood still
    assert harness.persistent().connack.session_present
    assert watcher.take() == [GONE]
    harness.pass_time(3600)
    assert not watcher.take()


def test_wills_count_as_memory_until_they_are_published_or_dropped(harness: Harness) -> None:
    memory = harness.broker.queue_memory
    large = Will("wills/c", b"x" * 1_000, properties=Properties(will_delay_interval=10))
    harness.connect("a", will=large)
    assert memory.bytes == message_size(large)
    harness.connect("b", will=large).send(Disconnect())
    harness.persistent("c", will=large).drop()
    assert memory.bytes == 2 * message_size(large)
    harness.persistent("c", will=large)
    harness.connect("a").drop()
    assert memory.bytes == message_size(large)
    harness.connect("c")
    assert memory.bytes == 0


def test_a_will_needs_memory() -> None:
    harness = Harness(replace(UNSHARED, maximum_queued_bytes_total=500))
    harness.connect("a", will=Will("wills/a", b"x" * 500))
    client = harness.open()
    client.send(Connect("b", will=Will("wills/b", b"")))
    assert client.take_only(ConnAck).reason_code == ReasonCode.QUOTA_EXCEEDED
    assert harness.counters.count("tidegate/refused/wills") == 1
    harness.connect("c")


def test_a_bridge_says_itself_whether_it_is_connected(harness: Harness) -> None:
    states = harness.connect("states")
    states.subscribe("$SYS/broker/connection/#")
    topic = "$SYS/broker/connection/mill/state"
    mill = harness.connect("mill", will=Will(topic, b"0"))
    mill.send(Publish(topic, b"1", 1, packet_id=1))
    harness.connect("other").send(Publish(topic, b"forged", 1, packet_id=1))
    mill.drop()
    assert [each.payload for each in states.take() if isinstance(each, Publish)] == [b"1", b"0"]
