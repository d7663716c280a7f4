"""Topic aliases of what clients are sent."""

from dataclasses import replace

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    PubAck,
    Publish,
    SubscriptionRequest,
)
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from tests.support.aliases import TOPIC, alias_of, subscriber, taken
from tests.support.broker_harness import Harness
from tests.support.held_disk import Disk
from tests.support.inline import Inline

OTHER = "site/floor/device/humidity"


@pytest.mark.parametrize(
    ("theirs", "ours", "aliases"),
    [(None, 5, 0), (2, 5, 2), (5, 2, 2), (5, 0, 0), (65_535, 3, 3)],
)
def test_the_lesser_maximum_counts(theirs: int | None, ours: int, aliases: int) -> None:
    harness = Harness(BrokerSettings(topic_alias_maximum_out=ours))
    client = subscriber(harness, theirs)
    for number in range(10):
        harness.publish(f"{TOPIC}/{number}")
    used = {alias for _, alias in taken(client)} - {None}
    assert used == set(range(1, aliases + 1))


def test_no_alias_for_mqtt_3_1_1(harness: Harness) -> None:
    client = harness.connect("old", MQTT_3_1_1)
    client.subscribe("#")
    for _ in range(2):
        harness.publish(TOPIC)
    assert client.take() == [Publish(TOPIC, b"x")] * 2


def test_a_great_many_receivers_of_every_kind_get_the_same_message(harness: Harness) -> None:
    receivers = []
    for number in range(90):
        maximum = 3 if number % 3 == 2 else None
        properties = Properties(topic_alias_maximum=maximum) if maximum else NO_PROPERTIES
        version = MQTT_5 if number % 3 else MQTT_3_1_1
        receivers.append((harness.connect(f"c{number}", version, properties=properties), number))
    for client, number in receivers:
        client.subscribe("#", number // 3 % 3)
    told: list[dict[int, str]] = [{} for _ in receivers]
    publisher = harness.connect("p")
    hits = 0
    topics = [TOPIC, OTHER, TOPIC, "a/b", f"{TOPIC}/x", f"{OTHER}/y", TOPIC, OTHER]
    for number, topic in enumerate(topics):
        payload = b"%d" % number
        publisher.send(Publish(topic, payload, 2, packet_id=number + 1))
        for (client, kind), aliases in zip(receivers, told, strict=True):
            (publish,) = client.take()
            assert isinstance(publish, Publish)
            assert (publish.payload, publish.qos) == (payload, kind // 3 % 3)
            alias = publish.properties.topic_alias
            assert alias is None or kind % 3 == 2
            if alias is not None:
                hits += publish.topic == ""
                aliases[alias] = publish.topic or aliases[alias]
            assert (aliases[alias] if alias else publish.topic) == topic
    assert hits == harness.broker.alias_budget.figures.hits == 30 * 2


def test_what_is_sent_again_carries_its_topic_name(harness: Harness) -> None:
    properties = Properties(topic_alias_maximum=2, session_expiry_interval=60)
    client = harness.connect("s", properties=properties, clean_start=False)
    client.subscribe("#", 2)
    for _ in range(3):
        harness.publish(TOPIC, qos=1)
    assert taken(client) == [(TOPIC, 1), ("", 1), ("", 1)]
    client.drop()
    assert harness.broker.alias_budget.figures.bytes_held == 0
    again = harness.connect("s", properties=properties, clean_start=False)
    resent = again.take()
    assert [alias_of(packet) for packet in resent] == [(TOPIC, None)] * 3
    assert all(isinstance(packet, Publish) and packet.dup for packet in resent)
    harness.publish(TOPIC)
    assert taken(again) == [(TOPIC, 1)]


def test_a_new_connection_says_itself_how_many_it_takes(harness: Harness) -> None:
    first = subscriber(harness, 2, session_expiry_interval=60)
    harness.publish(TOPIC)
    assert taken(first) == [(TOPIC, 1)]
    second = harness.connect("s", clean_start=False)
    assert first.closed()
    harness.publish(TOPIC)
    assert taken(second) == [(TOPIC, None)]


def test_who_is_taken_over_sees_no_packet_that_relies_on_the_successors_aliases(
    harness: Harness,
) -> None:
    first = subscriber(harness, 2, session_expiry_interval=60)
    harness.publish(TOPIC, qos=1)
    first.reads = False
    harness.publish(OTHER, qos=1)  # queued, and never leaves
    properties = Properties(topic_alias_maximum=2, session_expiry_interval=60)
    second = harness.connect("s", properties=properties, clean_start=False)
    harness.publish(OTHER)
    harness.publish(OTHER)
    assert taken(second) == [(TOPIC, None), (OTHER, None), (OTHER, 1), ("", 1)]
    first.reads = True
    harness.settle()
    mapping, queued, disconnect = first.take()
    assert [alias_of(mapping), alias_of(queued)] == [(TOPIC, 1), (OTHER, 2)]
    assert isinstance(disconnect, Disconnect)
    assert harness.broker.alias_budget.figures.bytes_held > 0
    second.drop()
    assert harness.broker.alias_budget.figures.bytes_held == 0


def test_aliases_keep_their_order_behind_an_answer_that_waits_for_the_disk() -> None:
    disk = Disk()
    harness = Harness(disk=disk)
    harness.broker.subscribe_inline(Inline("outbox", disk), ["up/#"])
    client = subscriber(harness)
    client.send(Publish("up/device/temperature", b"x", 1, packet_id=5))
    assert taken(client) == [("up/device/temperature", 1)]
    for topic in (TOPIC, TOPIC, OTHER, TOPIC, OTHER):
        harness.publish(topic)
    assert client.take() == []
    harness.commit()
    answer, *behind = client.take()
    assert answer == PubAck(5)
    expected = [(TOPIC, 2), ("", 2), (OTHER, 1), ("", 2), ("", 1)]
    assert [alias_of(packet) for packet in behind] == expected


def test_no_packet_is_larger_for_its_alias_than_the_client_takes(harness: Harness) -> None:
    plain = len(TOPIC) + 100
    for maximum in range(plain, plain + 40):
        client = subscriber(harness, 2, f"c{maximum}", maximum_packet_size=maximum)
        seen = len(client.raw)
        for _ in range(2):
            harness.publish(TOPIC, b"x" * (100 - 5), qos=0)
        received = len(client.take())
        assert received == 2
        assert len(client.raw) - seen <= 2 * maximum
        client.drop()


@pytest.mark.parametrize("maximum", [None, 2])
def test_what_does_not_fit_with_its_topic_name_is_not_sent_without(
    harness: Harness, maximum: int | None
) -> None:
    client = subscriber(harness, maximum, maximum_packet_size=100)
    harness.publish(TOPIC)
    client.take()
    harness.publish(TOPIC, b"x" * 70, qos=1)
    harness.publish("a", b"x" * 70)
    (publish,) = client.take()
    assert alias_of(publish) == ("a", None)
    assert harness.counters.count("publish/messages/dropped") == 1


def test_settings_of_the_budget_are_kept() -> None:
    harness = Harness(
        BrokerSettings(
            topic_alias_client_bytes=1_000,
            topic_alias_soft_bytes=2_000,
            topic_alias_hard_bytes=3_000,
        )
    )
    budget = harness.broker.alias_budget
    assert (budget.client_bytes, budget.soft_bytes, budget.hard_bytes) == (1_000, 2_000, 3_000)
    clients = [subscriber(harness, 100, f"c{number}") for number in range(5)]
    for number in range(20):
        harness.publish(f"{TOPIC}/{number:02}")
    figures = budget.figures
    assert 1_500 < figures.bytes_held <= 2_000
    assert figures.refused_soft > 0
    for client in clients:
        client.drop()
    assert figures.bytes_held == 0


def test_an_alias_changes_nothing_else(harness: Harness) -> None:
    plain, aliased = (
        harness.connect(name, properties=Properties(topic_alias_maximum=maximum))
        for name, maximum in (("plain", None), ("aliased", 1))
    )
    for client in (plain, aliased):
        client.subscribe_all([SubscriptionRequest("#", 1)], identifier=7)
    described = Properties(
        content_type="text/plain", message_expiry_interval=60, user_properties=(("a", "b"),)
    )
    publisher = harness.connect()
    for topic in (TOPIC, ""):
        publisher.send(Publish(TOPIC, b"x", 1, packet_id=3, properties=described))
        (expected,), (publish,) = plain.take(), aliased.take()
        assert isinstance(expected, Publish)
        expected.topic = topic
        expected.properties = replace(expected.properties, topic_alias=1)
        assert publish == expected
