"""When a will is published, and when not."""

from dataclasses import replace

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    Publish,
    Will,
    message_size,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.memory_client import MemoryClient

VERSIONS = (MQTT_3_1_1, MQTT_5)
GONE = Publish("wills/c", b"gone")


def will(delay: int | None = None) -> Will:
    return Will("wills/c", b"gone", properties=Properties(will_delay_interval=delay))


@pytest.fixture
def watcher(harness: Harness) -> MemoryClient:
    client = harness.connect("watcher")
    client.subscribe("wills/+", retain_as_published=True)
    return client


def test_the_will_is_a_message_like_any_other(harness: Harness, watcher: MemoryClient) -> None:
    watcher.subscribe("wills/+", 1, retain_as_published=True)
    properties = Properties(
        will_delay_interval=0, content_type="text/plain", user_properties=(("site", "A"),)
    )
    last = Will("wills/c", b"gone", qos=2, retain=True, properties=properties)
    harness.connect("c", will=last).drop()
    expected = Properties(content_type="text/plain", user_properties=(("site", "A"),))
    assert watcher.take() == [
        Publish("wills/c", b"gone", 1, retain=True, packet_id=1, properties=expected)
    ]
    (kept,) = harness.broker.retained.find("wills/c", harness.now)
    assert (kept.client_id, kept.qos) == ("c", 2)


@pytest.mark.parametrize("cause", ["keep alive", "protocol error", "take over"])
def test_whatever_else_ends_the_connection_publishes_the_will(
    harness: Harness, watcher: MemoryClient, cause: str
) -> None:
    client = harness.persistent(keep_alive=10, will=will())
    if cause == "keep alive":
        harness.pass_time(15)
    elif cause == "protocol error":
        client.send(ConnAck())
    else:
        harness.persistent()
    assert client.closed()
    assert watcher.take() == [GONE]


def test_a_will_whose_delay_was_over_is_not_called_off_before_the_timer_has_run(
    harness: Harness, watcher: MemoryClient
) -> None:
    harness.persistent(will=will(delay=30)).drop()
    harness.now += 30  # as on a machine that stood still
    assert harness.persistent().connack.session_present
    assert watcher.take() == [GONE]
    harness.pass_time(3600)
    assert not watcher.take()


@pytest.mark.parametrize("again", [True, False])
def test_a_new_connection_cancels_a_delayed_will(
    harness: Harness, watcher: MemoryClient, *, again: bool
) -> None:
    harness.persistent(will=will(delay=30)).drop()
    harness.pass_time(29)
    second = harness.persistent(will=will(delay=5) if again else None)
    harness.pass_time(100)
    assert not watcher.take()
    second.drop()
    harness.pass_time(5)
    assert watcher.take() == ([GONE] if again else [])


def test_the_end_of_the_session_publishes_a_delayed_will(
    harness: Harness, watcher: MemoryClient
) -> None:
    harness.connect(session_expiry=10, will=will(delay=30)).drop()
    harness.pass_time(10)
    assert watcher.take() == [GONE]
    harness.pass_time(30)
    assert not watcher.take()


def test_a_clean_start_publishes_a_delayed_will(harness: Harness, watcher: MemoryClient) -> None:
    harness.persistent(will=will(delay=30)).drop()
    harness.persistent(clean_start=True)
    assert watcher.take() == [GONE]
    harness.pass_time(30)
    assert not watcher.take()


def test_no_will_comes_after_a_session_that_was_left_properly(
    harness: Harness, watcher: MemoryClient
) -> None:
    harness.connect(session_expiry=10, will=will()).send(Disconnect())
    harness.pass_time(10)
    assert "c" not in harness.broker.sessions
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
    (connack,) = client.take()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == ReasonCode.QUOTA_EXCEEDED
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
