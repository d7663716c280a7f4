"""What a subscription brings of what is retained."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from tests.support.broker_harness import Harness
from tests.support.subscribing import topics

VERSIONS = (MQTT_3_1_1, MQTT_5)


def test_no_local_counts_for_retained_messages_too(harness: Harness) -> None:
    client, other = harness.connect(), harness.connect("other")
    client.send(Publish("a/mine", b"x", retain=True))
    other.send(Publish("a/theirs", b"x", retain=True))
    client.subscribe("a/+", no_local=True)
    assert topics(client.take()) == ["a/theirs"]
    client.subscribe("a/#")
    assert sorted(topics(client.take())) == ["a/mine", "a/theirs"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_subscription_gets_what_is_retained(harness: Harness, version: int) -> None:
    for topic in ("a/b", "a/c", "b"):
        harness.publish(topic, topic.encode(), qos=1, retain=True)
    client = harness.connect("c", version)
    client.subscribe("a/+", 2)
    retained = sorted(client.take(), key=repr)
    assert [(p.topic, p.payload, p.qos, p.retain) for p in retained if isinstance(p, Publish)] == [
        ("a/b", b"a/b", 1, True),
        ("a/c", b"a/c", 1, True),
    ]


def test_retain_is_set_only_on_what_the_subscription_brings(harness: Harness) -> None:
    plain, as_published = harness.connect("plain"), harness.connect("as published")
    plain.subscribe("a")
    as_published.subscribe("a", retain_as_published=True)
    harness.publish("a", retain=True)
    harness.publish("a")
    assert plain.take() == [Publish("a", b"x"), Publish("a", b"x")]
    assert as_published.take() == [Publish("a", b"x", retain=True), Publish("a", b"x")]
    plain.subscribe("a")
    assert plain.take() == [Publish("a", b"x", retain=True)]


@pytest.mark.parametrize(("handling", "expected"), [(0, [1, 1]), (1, [1, 0]), (2, [0, 0])])
def test_retain_handling(harness: Harness, handling: int, expected: list[int]) -> None:
    harness.publish("a", retain=True)
    client = harness.connect()
    brought = []
    for _ in range(2):
        client.subscribe("a", retain_handling=handling)
        brought.append(len(client.take()))
    assert brought == expected


def test_a_shared_subscription_brings_nothing_retained(harness: Harness) -> None:
    harness.publish("a", retain=True)
    client = harness.connect()
    client.subscribe("$share/g/a")
    assert not client.take()


def test_an_empty_payload_clears_what_is_retained(harness: Harness) -> None:
    live, late = harness.connect("live"), harness.connect("late")
    harness.publish("a", retain=True)
    live.subscribe("a", retain_handling=2)
    harness.publish("a", b"", retain=True)
    assert live.take() == [Publish("a", b"")]
    late.subscribe("a")
    assert not late.take()


def test_a_retained_message_expires(harness: Harness) -> None:
    harness.publish("a", retain=True, message_expiry=10)
    client = harness.connect()
    harness.pass_time(4)
    client.subscribe("a")
    (publish,) = client.take()
    assert isinstance(publish, Publish)
    assert publish.properties.message_expiry_interval == 6
    harness.pass_time(6)
    client.subscribe("a")
    assert not client.take()
