"""What a subscriber gets of a PUBLISH, in which order, and again: sections 3.3 and 4.3 to 4.6."""

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.raw_client import Clients, RawClient


async def pair(
    clients: Clients, name: str, version: int = MQTT_5, qos: int = 2
) -> tuple[RawClient, RawClient]:
    """Return a client that is subscribed to everything below `name`, and one that publishes."""
    receiver = await clients.connect(f"{name}-r", version)
    await receiver.subscribe(f"{name}/#", qos)
    return receiver, await clients.connect(f"{name}-p", version)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_3_3_1_3_dup_and_packet_identifier_are_the_brokers_own(
    clients: Clients, name: str, version: int, qos: int
) -> None:
    receiver, publisher = await pair(clients, name, version)
    packet_id = 4_321 if qos else 0
    await publisher.send(Publish(f"{name}/a", b"x", qos, dup=qos > 0, packet_id=packet_id))
    assert await receiver.receive() == Publish(f"{name}/a", b"x", qos, packet_id=1 if qos else 0)


async def test_4_3_3_exactly_once_through_both_halves(clients: Clients, name: str) -> None:
    receiver, publisher = await pair(clients, name)
    publish = Publish(f"{name}/a", b"x", 2, packet_id=7)
    await publisher.send(publish)
    assert await publisher.receive() == PubRec(7)
    await publisher.send(publish, PubRel(7))
    assert await publisher.receive() == PubRec(7)
    assert await publisher.receive() == PubComp(7)
    assert await receiver.receive() == Publish(f"{name}/a", b"x", 2, packet_id=1)
    await receiver.send(PubRec(1))
    assert await receiver.receive() == PubRel(1)
    await receiver.send(PubComp(1))
    assert not await receiver.waiting()


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_4_6_0_order(clients: Clients, name: str, qos: int) -> None:
    receiver, publisher = await pair(clients, name, qos=qos)
    count = 90  # below the window, so that nothing need be acknowledged
    for number in range(count):
        await publisher.send(
            Publish(f"{name}/a", b"%d" % number, qos, packet_id=number + 1 if qos else 0)
        )
    payloads = []
    for _ in range(count):
        packet = await receiver.receive()
        assert isinstance(packet, Publish)
        payloads.append(int(packet.payload))
    assert payloads == list(range(count))


async def test_3_3_4_9_the_receive_maximum_of_the_client(clients: Clients, name: str) -> None:
    receiver = await clients.connect(name, properties=Properties(receive_maximum=2))
    await receiver.subscribe(f"{name}/#", 1)
    publisher = await clients.connect(f"{name}-p")
    for number in range(5):
        await publisher.send(Publish(f"{name}/a", b"%d" % number, 1, packet_id=1))
        assert await publisher.receive() == PubAck(1)
    seen = await receiver.waiting()
    assert len(seen) == 2
    while len(seen) < 5:
        first = seen[-2]
        assert isinstance(first, Publish)
        await receiver.send(PubAck(first.packet_id))
        seen += await receiver.waiting()
    assert [one.payload for one in seen if isinstance(one, Publish)] == [
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
async def test_4_4_0_1_what_was_not_acknowledged_comes_again(
    clients: Clients, name: str, version: int
) -> None:
    lasting: dict[str, object] = {"clean_start": False}
    if version == MQTT_5:
        lasting["properties"] = Properties(session_expiry_interval=60)
    first = await clients.connect(name, version, **lasting)
    await first.subscribe(f"{name}/#", 2)
    publisher = await clients.connect(f"{name}-p", version)
    for number, qos in enumerate((1, 2, 1)):
        await publisher.send(Publish(f"{name}/a", b"%d" % number, qos, packet_id=number + 1))
        await publisher.receive()
    assert len(await first.waiting()) == 3
    await first.send(PubAck(1), PubRec(2))
    assert await first.receive() == PubRel(2)
    first.reset()
    second = await clients.connect(name, version, **lasting)
    assert second.connack.session_present
    assert await second.waiting() == [
        PubRel(2),
        Publish(f"{name}/a", b"2", 1, dup=True, packet_id=3),
    ]


async def test_3_3_2_4_to_20_properties_are_passed_on(clients: Clients, name: str) -> None:
    receiver, publisher = await pair(clients, name)
    properties = Properties(
        payload_format_indicator=1,
        content_type="text/plain",
        response_topic=f"{name}/answers",
        correlation_data=bytes(range(256)),
        user_properties=(("b", "2"), ("a", "1"), ("b", "3")),
    )
    await publisher.send(Publish(f"{name}/a", "°C".encode(), properties=properties))
    assert await receiver.receive() == Publish(f"{name}/a", "°C".encode(), properties=properties)


async def test_3_3_2_7_topic_aliases_end_with_their_connection(clients: Clients, name: str) -> None:
    receiver, publisher = await pair(clients, name)
    alias = Properties(topic_alias=1)
    await publisher.send(
        Publish(f"{name}/a", b"1", properties=alias),
        Publish("", b"2", properties=alias),
        Publish(f"{name}/b", b"3", properties=alias),
        Publish("", b"4", properties=alias),
    )
    topics = []
    for _ in range(4):
        packet = await receiver.receive()
        assert isinstance(packet, Publish)
        topics.append(packet.topic)
    assert topics == [f"{name}/{level}" for level in "aabb"]
    again = await clients.connect(f"{name}-p")
    await again.send(Publish("", b"5", properties=alias))
    (disconnect,) = await again.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.PROTOCOL_ERROR


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 4_000_000])
async def test_2_1_4_payloads_of_every_length_of_the_length(
    clients: Clients, name: str, size: int
) -> None:
    receiver, publisher = await pair(clients, name)
    await publisher.send(Publish(f"{name}/a", b"x" * size))
    packet = await receiver.receive()
    assert isinstance(packet, Publish)
    assert packet.payload == b"x" * size
