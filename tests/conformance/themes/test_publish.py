"""What a publisher is answered: sections 3.3 to 3.7 and 4.3."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, Disconnect, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.conversation import converse
from tests.support.raw_client import Clients

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
