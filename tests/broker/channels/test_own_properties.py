"""What a publisher says of attempts is not believed: ours is the last of the name, and there."""

import pytest

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.channel_harness import (
    channel_of,
    consumer,
    durable,
    messages,
)
from tests.support.broker.memory_client import MemoryClient

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
    assert {each.properties.user_properties for each in given} == {(*FORGED, ("attempt", "1"))}
    client.send(PubAck(given[1].packet_id))
    _refuse(client, given[0], given[2])
    harness.pass_time(0)
    again = [*messages(client)]
    assert [each.payload for each in again] == [b"0", b"2"]
    assert {each.properties.user_properties for each in again} == {(*FORGED, ("attempt", "2"))}
    _refuse(client, *again)
    harness.pass_time(0)
    letters = [*messages(dead)]
    assert [each.payload for each in letters] == [b"0", b"2"]
    ours = (("topic", "t/a"), ("channel", "jobs"), ("attempt", "2"))
    assert {each.properties.user_properties for each in letters} == {(*FORGED, *ours)}
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (0, 0)


@pytest.mark.parametrize("properties", [(), (("&", "attempt"),), (("attempts", "1"),)])
def test_other_messages_are_given_out_the_first_time_as_they_came(
    properties: tuple[tuple[str, str], ...],
) -> None:
    harness = durable()
    client = consumer(harness, "c")
    harness.connect("p").send(*_many(2, properties))
    given = [*messages(client)]
    assert [each.properties.user_properties for each in given] == [properties, properties]
