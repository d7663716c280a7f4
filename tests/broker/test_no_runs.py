"""What is handled message by message, and not as a run."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish, SubscriptionRequest
from gateway.mqtt.properties import Properties
from tests.support.broker_harness import Harness
from tests.support.inline import Inline
from tests.support.memory_client import MemoryClient
from tests.support.payloads import payloads
from tests.support.runs import send


def test_a_topic_without_subscribers_is_passed_over(passed_on: list[bool]) -> None:
    harness = Harness()
    send(harness.connect("publisher"), 10)
    assert passed_on == [True]
    assert harness.broker.traffic.messages_received == 10


def _identified(client: MemoryClient) -> None:
    client.subscribe_all([SubscriptionRequest("a/b")], identifier=7)


def _filtered(client: MemoryClient) -> None:
    client.subscribe_all([SubscriptionRequest("a/b")], where="payload > 1")


OTHERWISE: dict[str, Callable[[Harness], object]] = {
    "an identifier": lambda harness: _identified(harness.connect("c")),
    "a filter": lambda harness: _filtered(harness.connect("c")),
    "no local": lambda harness: harness.connect("c").subscribe("a/b", no_local=True),
    "a shared subscription": lambda harness: harness.connect("c").subscribe("$share/g/a/b"),
    "a part of the gateway": lambda harness: harness.broker.subscribe_inline(Inline(), ["#"]),
    "aliases": lambda harness: harness.connect(
        "c", properties=Properties(topic_alias_maximum=5)
    ).subscribe("a/b"),
}


@pytest.mark.parametrize("otherwise", OTHERWISE.values(), ids=OTHERWISE)
def test_where_a_receiver_needs_more_each_message_is_handled(
    otherwise: Callable[[Harness], object], passed_on: list[bool]
) -> None:
    harness = Harness()
    plain = harness.connect("plain")
    plain.subscribe("a/b")
    otherwise(harness)
    send(harness.connect("publisher"), 3)
    assert payloads(plain.take()) == [b"000", b"001", b"002"]
    assert passed_on == [False] * 3


@pytest.mark.parametrize(
    "fields",
    [
        {"qos": 1, "packet_id": 1, "dup": True},
        {"retain": True},
        {"properties": Properties(content_type="text")},
    ],
)
def test_where_a_message_says_more_it_is_handled(
    fields: dict[str, Any], passed_on: list[bool]
) -> None:
    harness = Harness()
    plain = harness.connect("plain")
    plain.subscribe("a/b")
    send(harness.connect("publisher"), 1, **fields)
    assert payloads(plain.take()) == [b"000"]
    assert passed_on == [False]


def test_topics_that_are_refused_are_handled(passed_on: list[bool]) -> None:
    harness = Harness(BrokerSettings(maximum_topic_levels=2))
    publisher = harness.connect("publisher", MQTT_3_1_1)
    publisher.send(Publish("$SYS/x", b"1"), Publish("$SYS/x", b"1"))
    assert harness.counters.count("tidegate/clients/not_authorized") == 2
    publisher.send(Publish("a/b/c", b"1"))
    assert publisher.closed()
    assert passed_on == [False] * 3


def test_peer_to_peer_topics_are_handled(passed_on: list[bool]) -> None:
    harness = Harness(BrokerSettings(p2p=True))
    send(harness.connect("publisher"), 1)
    assert passed_on == [False]


def test_a_publish_before_connect_is_no_run() -> None:
    harness = Harness()
    stranger = harness.open(MQTT_5)
    stranger.send(Publish("a", b"1"))
    assert stranger.closed()


def test_a_length_written_too_long_is_not_passed_on(passed_on: list[bool]) -> None:
    harness = Harness()
    plain = harness.connect("plain", MQTT_3_1_1)
    plain.subscribe("a/b")
    publisher = harness.connect("publisher", MQTT_3_1_1)
    raw = encode(Publish("a/b", b"xyz"), MQTT_3_1_1)
    publisher.send_bytes((raw[:1] + bytes([raw[1] | 0x80, 0x00]) + raw[2:]) * 2)
    assert payloads(plain.take()) == [b"xyz"] * 2
    assert passed_on == [False] * 2
    publisher.send(Publish("a/b", b"x" * 200))
    assert payloads(plain.take()) == [b"x" * 200]
    assert passed_on[2:] == [True]


def test_a_packet_above_a_receiver_s_maximum_is_handled(passed_on: list[bool]) -> None:
    harness = Harness()
    small = harness.connect("small", maximum_packet_size=100)
    small.subscribe("a/b")
    harness.connect("publisher").send(Publish("a/b", bytes(93)), Publish("a/b", bytes(92)))
    assert payloads(small.take()) == [bytes(92)]
    assert passed_on == [False, True]


def test_a_client_that_reads_too_slowly_is_given_no_runs(passed_on: list[bool]) -> None:
    harness = Harness()
    slow = harness.connect("slow")
    slow.subscribe("a/b")
    slow.reads = False
    publisher = harness.connect("publisher")
    publisher.send(*(Publish("a/b", bytes(100_000)) for _ in range(11)))
    publisher.send(Publish("a/b", b"waits"))
    assert passed_on == [True, False]
    assert len(harness.session("slow").queue) == 1
