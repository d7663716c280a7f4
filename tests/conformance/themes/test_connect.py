"""CONNECT and CONNACK: MQTT 3.1.1 and MQTT 5, sections 3.1 and 3.2."""

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Publish,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.conversation import converse
from tests.support.raw_client import Clients
from tests.support.versions import VERSIONS

# Statements are those of MQTT 3.1.1 here.
THREE = {
    "MQTT-3.1.0-1 the first packet is CONNECT": """
        > c0 00
        x""",
    "MQTT-3.1.0-2 a second CONNECT": """
        > 10 0d 00 04 'MQTT' 04 02 00 00 00 01 'x'
        < 20 02 00 00
        > 10 0d 00 04 'MQTT' 04 02 00 00 00 01 'x'
        x""",
    "MQTT-3.1.2-1 another protocol": """
        > 10 0d 00 04 'AMQP' 04 02 00 00 00 01 'x'
        < 20 02 00 01
        x""",
    "MQTT-3.1.2-2 a level that is not supported": """
        > 10 0d 00 04 'MQTT' 06 02 00 00 00 01 'x'
        < 20 02 00 01
        x""",
    "MQTT 3.1 is still spoken": """
        > 10 0f 00 06 'MQIsdp' 03 02 00 00 00 01 'x'
        < 20 02 00 00
        = 3""",
    "MQTT-3.1.2-3 the reserved flag": """
        > 10 0d 00 04 'MQTT' 04 03 00 00 00 01 'x'
        x""",
    "MQTT-3.1.2-11 will QoS and retain without a will": """
        > 10 0d 00 04 'MQTT' 04 2a 00 00 00 01 'x'
        x""",
    "MQTT-3.1.2-14 will QoS 3": """
        > 10 13 00 04 'MQTT' 04 1e 00 00 00 01 'x' 00 01 'w' 00 01 'p'
        x""",
    "MQTT-3.1.2-19 a user name flag without a user name": """
        > 10 0d 00 04 'MQTT' 04 82 00 00 00 01 'x'
        x""",
    "MQTT-3.1.2-22 a password without a user name": """
        > 10 10 00 04 'MQTT' 04 42 00 00 00 01 'x' 00 01 'p'
        x""",
    "MQTT-3.1.2-18 bytes behind the last field": """
        > 10 10 00 04 'MQTT' 04 02 00 00 00 01 'x' 00 01 'p'
        x""",
    "MQTT-3.1.3-4 a client identifier that is not UTF-8": """
        > 10 0d 00 04 'MQTT' 04 02 00 00 00 01 ff
        x""",
    "MQTT-1.5.3-2 a client identifier with U+0000": """
        > 10 0d 00 04 'MQTT' 04 02 00 00 00 01 00
        x""",
    "MQTT-3.1.3-6 an empty client identifier and a clean session": """
        > 10 0c 00 04 'MQTT' 04 02 00 00 00 00
        < 20 02 00 00
        = 4""",
    "MQTT-3.1.3-8 an empty client identifier without a clean session": """
        > 10 0c 00 04 'MQTT' 04 00 00 00 00 00
        < 20 02 00 02
        x""",
    "MQTT-3.1.4-5 packets before the CONNACK": """
        > 10 0d 00 04 'MQTT' 04 02 00 00 00 01 'x' c0 00
        < 20 02 00 00 d0 00""",
    "MQTT-2.2.2-2 flags of CONNECT": """
        > 11 0d 00 04 'MQTT' 04 02 00 00 00 01 'x'
        x""",
    "a CONNECT that is cut short by its own length": """
        > 10 04 00 04 'MQ'
        x""",
    "a remaining length of five bytes": """
        > 10 ff ff ff ff 01
        x""",
}

FIVE = {
    "MQTT-3.1.0-1 the first packet is CONNECT": """
        > 30 05 00 01 'a' 00 'x'
        x""",
    "MQTT-3.1.2-3 the reserved flag": """
        > 10 0e 00 04 'MQTT' 05 03 00 00 00 00 01 'x'
        x 81""",
    "MQTT-3.1.2-2 a version that is not supported": """
        > 10 0e 00 04 'MQTT' 07 02 00 00 00 00 01 'x'
        < 20 02 00 01
        x""",
    "MQTT-3.1.2-12 will QoS 3": """
        > 10 15 00 04 'MQTT' 05 1e 00 00 00 00 01 'x' 00 00 01 'w' 00 01 'p'
        x 81""",
    "MQTT-3.1.2-11 will retain without a will": """
        > 10 0e 00 04 'MQTT' 05 22 00 00 00 00 01 'x'
        x 81""",
    "section 3.1.2.11 a property of another packet": """
        > 10 10 00 04 'MQTT' 05 02 00 00 02 01 00 00 01 'x'
        x 81""",
    "section 3.1.2.11.2 a property twice": """
        > 10 14 00 04 'MQTT' 05 02 00 00 06 21 00 05 21 00 05 00 01 'x'
        x 82""",
    "section 3.1.2.11.3 Receive Maximum 0": """
        > 10 11 00 04 'MQTT' 05 02 00 00 03 21 00 00 00 01 'x'
        x 82""",
    "section 3.1.2.11.4 Maximum Packet Size 0": """
        > 10 13 00 04 'MQTT' 05 02 00 00 05 27 00 00 00 00 00 01 'x'
        x 82""",
    "section 3.1.2.11.7 Request Problem Information 2": """
        > 10 10 00 04 'MQTT' 05 02 00 00 02 17 02 00 01 'x'
        x 82""",
    "section 3.1.2.11.10 Authentication Data without a method": """
        > 10 12 00 04 'MQTT' 05 02 00 00 04 16 00 01 'd' 00 01 'x'
        x 82""",
    "MQTT-4.12.0-1 an authentication method": """
        > 10 12 00 04 'MQTT' 05 02 00 00 04 15 00 01 'm' 00 01 'x'
        x 8c""",
    "MQTT-1.5.5-1 a property length that is longer than need be": """
        > 10 0f 00 04 'MQTT' 05 02 00 00 80 00 00 01 'x'
        x 81""",
    "section 3.1.2.9 a password without a user name is allowed": """
        > 10 11 00 04 'MQTT' 05 42 00 00 00 00 01 'x' 00 01 'p'
        < 20""",
}


@pytest.mark.parametrize("steps", THREE.values(), ids=THREE.keys())
async def test_mqtt_3_1_1(clients: Clients, steps: str) -> None:
    await converse(await clients.open(MQTT_3_1_1), steps)


@pytest.mark.parametrize("steps", FIVE.values(), ids=FIVE.keys())
async def test_mqtt_5(clients: Clients, steps: str) -> None:
    version = MQTT_3_1_1 if "20 02 00 01" in steps else MQTT_5
    await converse(await clients.open(version), steps)


async def test_3_2_2_16_an_assigned_client_identifier(clients: Clients) -> None:
    first, second = await clients.connect(""), await clients.connect("")
    names = {each.connack.properties.assigned_client_identifier for each in (first, second)}
    assert len(names) == 2
    assert all(names)


async def test_where_is_announced(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    assert ("$where", "1") in client.connack.properties.user_properties


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_1_4_3_a_second_connection_takes_over(
    clients: Clients, name: str, version: int
) -> None:
    first = await clients.connect(name, version)
    second = await clients.connect(name, version)
    packets = await first.until_closed()
    if version == MQTT_5:
        (last,) = packets
        assert isinstance(last, Disconnect)
        assert last.reason_code == ReasonCode.SESSION_TAKEN_OVER
    else:
        assert not packets
    assert not await second.waiting()


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_1_2_22_a_silent_client_is_closed(
    clients: Clients, name: str, version: int
) -> None:
    silent = await clients.connect(name, version, keep_alive=1)
    packets = await silent.until_closed()
    assert [getattr(packet, "reason_code", None) for packet in packets] == (
        [ReasonCode.KEEP_ALIVE_TIMEOUT] if version == MQTT_5 else []
    )


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
async def test_3_2_2_2_session_present(clients: Clients, name: str, version: int) -> None:
    lasting: dict[str, object] = {"clean_start": False}
    if version == MQTT_5:
        lasting["properties"] = Properties(session_expiry_interval=60)
    present = []
    for fields in (lasting, lasting, {}, {}, lasting):
        client = await clients.connect(name, version, **fields)
        present.append(client.connack.session_present)
        await client.send(Disconnect())
        await client.until_closed()
    assert present == [False, True, False, False, False]


async def test_3_1_2_24_the_maximum_packet_size_of_the_client(clients: Clients, name: str) -> None:
    small = await clients.connect(name, properties=Properties(maximum_packet_size=40))
    await small.subscribe(f"{name}/#")
    await small.send(Publish(f"{name}/a", b"x" * 40), Publish(f"{name}/a", b"fits"))
    assert await small.waiting() == [Publish(f"{name}/a", b"fits")]


async def test_a_connect_may_come_byte_by_byte(clients: Clients) -> None:
    client = await clients.open()
    for byte in b"\x10\x0e\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x01x":
        await client.send_bytes(bytes([byte]))
    connack = await client.receive()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == ReasonCode.SUCCESS


async def test_a_will_to_a_topic_of_the_brokers_own_is_refused(clients: Clients, name: str) -> None:
    from gateway.mqtt.packets import Will

    client = await clients.open()
    await client.send(Connect(name, will=Will("$SYS/broker/uptime", b"0")))
    (connack,) = await client.until_closed()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == ReasonCode.NOT_AUTHORIZED


async def test_pipelined_packets_are_answered_in_order(clients: Clients, name: str) -> None:
    client = await clients.open()
    await client.send(Connect(name), *[PingReq()] * 500)
    assert isinstance(await client.receive(), ConnAck)
    for _ in range(500):
        assert await client.receive() == PingResp()
