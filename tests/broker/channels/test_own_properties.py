"""What a publisher says of attempts is not believed: ours is the last of the name, and there."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.channel_harness import (
    SHARED,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request

FORGED = (("attempt", "9"), ("a", "b"), ("topic", "other"), ("channel", "x"))


def _refuse(client: MemoryClient, *packets: Publish) -> None:
    for each in packets:
        client.send(PubAck(each.packet_id, ReasonCode.UNSPECIFIED_ERROR))


def _many(count: int, properties: tuple[tuple[str, str], ...]) -> list[Publish]:
    said = Properties(user_properties=properties)
    return [
        Publish("t/a", b"%d" % each, 1, packet_id=each + 1, properties=said)
        for each in range(count)
    ]


@pytest.mark.parametrize("first", ["publisher", "consumer"])
def test_the_last_attempt_is_ours_from_the_first_time_on(first: str) -> None:
    harness = durable(max_attempts=2, dead_letter_topic="dead")
    dead, publisher = harness.connect("dead"), harness.connect("p")
    dead.subscribe("dead", 1)
    if first == "publisher":
        publisher.send(*_many(3, FORGED))
    client = consumer(harness, "c")
    if first == "consumer":
        publisher.send(*_many(3, FORGED))
    given = [*messages(client)]
    assert [each.payload for each in given] == [b"0", b"1", b"2"]
    assert {each.properties.user_properties[:-3] for each in given} == {FORGED}
    assert {each.properties.user_properties[-1] for each in given} == {("attempt", "1")}
    client.send(PubAck(given[1].packet_id))
    _refuse(client, given[0], given[2])
    harness.pass_time(0)
    again = [*messages(client)]
    assert [each.payload for each in again] == [b"0", b"2"]
    assert {each.properties.user_properties[-1] for each in again} == {("attempt", "2")}
    _refuse(client, *again)
    harness.pass_time(0)
    letters = [*messages(dead)]
    assert [each.payload for each in letters] == [b"0", b"2"]
    ours = (("topic", "t/a"), ("channel", "jobs"), ("attempt", "2"))
    assert {each.properties.user_properties for each in letters} == {(*FORGED, *ours)}
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (0, 0)


def _ours(packet: Publish) -> tuple[str, ...]:
    """The values of the last three properties, which are the gateway's."""
    last = packet.properties.user_properties[-3:]
    assert [name for name, _ in last] == ["id", "queued_at", "attempt"]
    return tuple(value for _, value in last)


@pytest.mark.parametrize("properties", [(), (("id", "mine"), ("attempts", "1"))])
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("temporary", [False, True])
def test_each_message_says_which_it_is_from_the_first_time_on(
    properties: tuple[tuple[str, str], ...], qos: int, temporary: bool
) -> None:
    harness = durable(temporary=temporary)
    client = consumer(harness, "c")
    said = Properties(user_properties=properties)
    harness.connect("p").send(
        *(
            Publish(topic, b"x" * size, qos, packet_id=number * qos, properties=said)
            for number, (topic, size) in enumerate([("t/a", 1), ("t/a", 1), ("t/b", 300)], 1)
        )
    )
    found = [*messages(client)]
    assert [(each.topic, len(each.payload)) for each in found] == [
        *(("t/a", 1), ("t/a", 1), ("t/b", 300))
    ]
    assert [each.properties.user_properties[:-3] for each in found] == [properties] * 3
    assert {_ours(each)[1:] for each in found} == {(str(harness.instant.wall), "1")}
    ids = [_ours(each)[0] for each in found]
    assert len({*ids}) == 3
    assert {len(each) for each in ids} == {16}
    if qos:
        _refuse(client, *found)
        harness.pass_time(0)
        again = [*messages(client)]
        assert [_ours(each)[::2] for each in again] == [(each, "2") for each in ids]
    if qos and not temporary:
        harness.pass_time(2)
        harness.crash()
        later = [*messages(consumer(harness, "d"))]
        assert [_ours(each)[::2] for each in later] == [(each, "3") for each in ids]


def test_what_was_emptied_leaves_its_name_to_nobody() -> None:
    harness = durable()
    publish(harness, "a")
    client = consumer(harness, "c")
    (first,) = messages(client)
    harness.broker.channels.empty(channel_of(harness))
    harness.pass_time(1)
    publish(harness, "b")
    (second,) = messages(client)
    assert _ours(first)[0] != _ours(second)[0]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("temporary", [False, True])
def test_many_have_consecutive_names(mixed: bool, qos: int, temporary: bool) -> None:
    """Also where more digits change than the last, and both bytes of a packet identifier."""
    harness = durable(temporary=temporary)
    client = consumer(harness, "c")
    topics = [f"t/{'x' * (each % 200 if mixed else 3)}" for each in range(600)]
    sent = [
        Publish(topic, b"%d" % number, qos, packet_id=number * qos)
        for number, topic in enumerate(topics, 1)
    ]
    harness.connect("p").send(*sent)
    found = [*messages(client)]
    assert [(each.topic, each.payload) for each in found] == [
        (each.topic, each.payload) for each in sent
    ]
    assert [each.packet_id for each in found] == [number * qos for number in range(1, 601)]
    ids = [int(_ours(each)[0], 16) for each in found]
    if qos and not temporary:
        assert ids == [*range(ids[0], ids[0] + 600)]
    assert len({*ids}) == 600


@pytest.mark.parametrize(
    ("how", "expiry"), [({}, 60), ({"alias": 5}, None), ({"identifier": 7}, None)]
)
def test_they_are_there_beside_what_belongs_to_a_connection(
    how: dict[str, int], expiry: int | None
) -> None:
    harness = durable()
    identifier = how.get("identifier")
    client = harness.connect("c", properties=Properties(topic_alias_maximum=how.get("alias")))
    client.subscribe_all([request(SHARED, 1)], identifier=identifier)
    said = Properties(message_expiry_interval=expiry)
    sent = [Publish("t/a", b"%d" % each, 1, packet_id=each, properties=said) for each in (1, 2)]
    harness.connect("p").send(*sent)
    found = [*messages(client)]
    assert [each.payload for each in found] == [b"1", b"2"]
    assert len({_ours(each) for each in found}) == 2
    for each in found:
        assert each.properties.message_expiry_interval == expiry
        assert each.properties.subscription_identifiers == ((identifier,) if identifier else ())


def test_before_mqtt_5_and_near_the_largest_packet_there_are_none() -> None:
    harness = durable()
    client = consumer(harness, "c", version=MQTT_3_1_1)
    publish(harness, "a")
    assert got(client) == "a"
    client.drop()
    client = consumer(harness, "d", maximum_packet_size=50)
    publish(harness, "b")
    (found,) = messages(client)
    assert found.properties.user_properties == ()


def test_one_message_is_touched_or_requeued_by_its_name() -> None:
    harness = durable()
    client = consumer(harness, "c")
    harness.connect("p").send(*_many(3, ()))
    found = [*messages(client)]
    channel, name = channel_of(harness), int(_ours(found[1])[0], 16)
    assert channel.deliveries.touch("c", harness.now, name) == 3  # they came together
    assert channel.deliveries.touch("c", harness.now, 1) == 0
    assert channel.requeue("c", harness.now + 5, name) == 1
    assert (channel.depth, channel.in_flight) == (1, 2)
    harness.pass_time(5)
    (again,) = messages(client)
    assert (again.payload, _ours(again)[::2]) == (b"1", (f"{name:016x}", "2"))


def test_several_go_together_to_a_consumer_of_an_earlier_version() -> None:
    harness = durable()
    client = consumer(harness, "c", version=MQTT_3_1_1)
    harness.connect("p").send(*_many(3, FORGED))
    assert got(client) == "012"
