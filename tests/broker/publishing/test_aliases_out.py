"""Topic aliases of what clients are sent."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Disconnect, PubAck, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.settings.broker import BrokerSettings
from tests.support.broker.aliases import TOPIC, alias_of, subscriber, taken
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.disk.held_disk import Disk

OTHER = "site/floor/device/humidity"


@pytest.mark.parametrize(
    ("theirs", "ours", "aliases"), [(None, 5, 0), (2, 5, 2), (5, 2, 2), (5, 0, 0), (65_535, 3, 3)]
)
def test_the_lesser_maximum_counts(theirs: int | None, ours: int, aliases: int) -> None:
    harness = Harness(BrokerSettings(topic_alias_maximum_out=ours))
    client = subscriber(harness, theirs)
    for number in range(10):
        harness.publish(f"{TOPIC}/{number}")
    used = {alias for _, alias in taken(client)} - {None}
    assert used == set(range(1, aliases + 1))


@pytest.mark.uncovered
def test_a_great_many_receivers_of_every_kind_get_the_same_message(harness: Harness) -> None:
    receivers = []
    for number in range(90):
        maximum = 3 if number % 3 == 2 else None
        properties = Properties(topic_alias_maximum=maximum) if maximum else NO_PROPERTIES
        version = MQTT_5 if number % 3 else MQTT_3_1_1
        receivers.append((harness.connect(f"c{number}", version, properties=properties), number))
    for client, number in receivers:
        client.subscribe("#", number // 3 % 3)
    reported: list[dict[int, str]] = [{} for _ in receivers]
    publisher = harness.connect("p")
    hits = 0
    topics = [TOPIC, OTHER, TOPIC, "a/b", f"{TOPIC}/x", f"{OTHER}/y", TOPIC, OTHER]
    for number, topic in enumerate(topics):
        payload = b"%d" % number
        publisher.send(Publish(topic, payload, 2, packet_id=number + 1))
        for (client, kind), aliases in zip(receivers, reported, strict=True):
            publish = client.take_only(Publish)
            assert (publish.payload, publish.qos) == (payload, kind // 3 % 3)
            alias = publish.properties.topic_alias
            assert alias is None or kind % 3 == 2
            if alias is not None:
                hits += publish.topic == ""
                aliases[alias] = publish.topic or aliases[alias]
            assert (aliases[alias] if alias else publish.topic) == topic
    assert hits == harness.broker.alias_budget.figures.hits == 30 * 2


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
