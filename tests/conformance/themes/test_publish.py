"""PUBLISH and its acknowledgements: sections 3.3 to 3.7 and 4.3 to 4.6."""

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
from tests.support.conversation import converse
from tests.support.raw_client import Clients, RawClient

THREE = {
    "MQTT-3.3.4-1 QoS 0": """
        > 30 04 00 01 'q' 'x'
        = 4""",
    "MQTT-3.3.4-1 QoS 1": """
        > 32 06 00 01 'q' 12 34 'x'
        < 40 02 12 34""",
    "MQTT-4.3.3-2 QoS 2": """
        > 34 06 00 01 'q' 12 34 'x'
        < 50 02 12 34
        > 3c 06 00 01 'q' 12 34 'x'
        < 50 02 12 34
        > 62 02 12 34
        < 70 02 12 34
        > 62 02 12 34
        < 70 02 12 34""",
    "an empty payload": """
        > 32 05 00 01 'q' 12 34
        < 40 02 12 34""",
    "MQTT-3.3.1-2 DUP at QoS 0": """
        > 38 04 00 01 'q' 'x'
        x""",
    "MQTT-3.3.1-4 QoS 3": """
        > 36 06 00 01 'q' 12 34 'x'
        x""",
    "MQTT-2.3.1-1 packet identifier 0": """
        > 32 06 00 01 'q' 00 00 'x'
        x""",
    "MQTT-3.3.2-2 a wildcard in the topic": """
        > 30 05 00 02 'q+' 'x'
        x""",
    "MQTT-3.3.2-2 another wildcard": """
        > 30 06 00 03 'q/#' 'x'
        x""",
    "MQTT-4.7.3-1 an empty topic": """
        > 30 03 00 00 'x'
        x""",
    "MQTT-4.7.3-2 U+0000 in the topic": """
        > 30 05 00 02 'q' 00 'x'
        x""",
    "MQTT-1.5.3-1 a surrogate in the topic": """
        > 30 06 00 03 ed a0 80 'x'
        x""",
    "MQTT-1.5.3-1 a topic that is not UTF-8": """
        > 30 04 00 01 c3 'x'
        x""",
    "a topic beyond the packet": """
        > 30 03 00 09 'q'
        x""",
    "MQTT-3.6.1-1 the flags of PUBREL": """
        > 60 02 00 01
        x""",
    "MQTT-2.2.2-2 the flags of PUBACK": """
        > 41 02 00 01
        x""",
    "an acknowledgement of nothing": """
        > 40 02 00 01 70 02 00 01
        = 4""",
    "packets of a server": """
        > 90 03 00 01 00
        x""",
    "packet type 0": """
        > 00 00
        x""",
    "packet type 15": """
        > f0 00
        x""",
}

FIVE = {
    "MQTT-3.3.2-8 topic alias 0": """
        > 30 08 00 01 'q' 03 23 00 00 'x'
        x 94""",
    "MQTT-3.3.2-9 a topic alias above the maximum": """
        > 30 08 00 01 'q' 03 23 ff ff 'x'
        x 94""",
    "section 3.3.2.3.4 an alias that is not set": """
        > 30 07 00 00 03 23 00 05 'x'
        x 82""",
    "section 3.3.2.1 neither topic nor alias": """
        > 30 04 00 00 00 'x'
        x 82""",
    "MQTT-3.3.2-2 a wildcard in the topic": """
        > 30 05 00 01 '+' 00 'x'
        x 90""",
    "MQTT-3.3.2-14 a wildcard in the response topic": """
        > 30 09 00 01 'q' 04 08 00 01 '#' 'x'
        x 90""",
    "MQTT-3.3.4-6 a subscription identifier from a client": """
        > 30 07 00 01 'q' 02 0b 01 'x'
        x 82""",
    "section 3.3.2.3.2 payload format 2": """
        > 30 07 00 01 'q' 02 01 02 'x'
        x 82""",
    "MQTT-4.3.3-12 PUBREL for an unknown packet identifier": """
        > 62 02 00 09
        < 70 03 00 09 92""",
    "PUBREC for an unknown packet identifier": """
        > 50 02 00 09
        < 62 03 00 09 92""",
    "section 2.4 a reason code that PUBACK does not have": """
        > 40 03 00 01 01
        x 81""",
    "MQTT-3.15.1-1 AUTH without a method at CONNECT": """
        > f0 00
        x 82""",
    "topics of the broker's own, QoS 1": """
        > 32 0b 00 05 '$SYS/' 00 09 00 'x'
        < 40 03 00 09 87""",
    "topics of the broker's own, QoS 2": """
        > 34 0b 00 05 '$SYS/' 00 09 00 'x'
        < 50 03 00 09 87""",
}


@pytest.mark.parametrize("steps", THREE.values(), ids=THREE.keys())
async def test_mqtt_3_1_1(clients: Clients, name: str, steps: str) -> None:
    await converse(await clients.connect(name, MQTT_3_1_1), steps)


@pytest.mark.parametrize("steps", FIVE.values(), ids=FIVE.keys())
async def test_mqtt_5(clients: Clients, name: str, steps: str) -> None:
    await converse(await clients.connect(name), steps)


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


async def test_a_packet_larger_than_the_maximum_is_refused(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    maximum = client.connack.properties.maximum_packet_size
    assert maximum == 4 * 1024 * 1024
    await client.send_bytes(b"\x30\x81\x80\x80\x02")
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.PACKET_TOO_LARGE


async def test_3_3_5_2_mqtt_3_1_1_is_acknowledged_what_it_may_not_write(
    clients: Clients, name: str
) -> None:
    watcher = await clients.connect(f"{name}-w")
    await watcher.subscribe(f"$SYS/{name}")
    client = await clients.connect(name, MQTT_3_1_1)
    await client.send(Publish(f"$SYS/{name}", b"x", 1, packet_id=5))
    assert await client.receive() == PubAck(5)
    assert not await watcher.waiting()


async def test_a_publisher_is_told_that_nobody_subscribed(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    await client.send(Publish(f"{name}/a", b"x", 1, packet_id=5))
    assert await client.receive() == PubAck(5, ReasonCode.NO_MATCHING_SUBSCRIBERS)
