"""SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK: sections 3.8 to 3.11."""

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.conversation import converse
from tests.support.payloads import payloads
from tests.support.raw_client import Clients

THREE = {
    "MQTT-3.8.4-1 -2 a SUBACK with the packet identifier": """
        > 82 06 12 34 00 01 'a' 00
        < 90 03 12 34 00""",
    "MQTT-3.8.4-4 -5 one return code for each filter": """
        > 82 0e 00 01 00 01 'a' 00 00 01 'b' 01 00 01 'c' 02
        < 90 05 00 01 00 01 02""",
    "MQTT-3.8.4-5 a filter that is refused": """
        > 82 89 02 00 01 00 01 'a' 02 01 00 *256 2f 00
        < 90 04 00 01 02 80""",
    "MQTT-4.7.1-2 a filter that is none, behind another": """
        > 82 0e 00 01 00 01 'a' 02 00 05 'a/#/b' 00
        x""",
    "MQTT-4.7.3-1 an empty filter before another": """
        > 82 09 00 01 00 00 00 00 01 'a' 02
        x""",
    "MQTT-4.7.3-1 UNSUBSCRIBE with an empty filter": """
        > a2 07 00 02 00 01 'a' 00 00
        x""",
    "MQTT-3.8.1-1 the flags": """
        > 80 06 00 01 00 01 'a' 00
        x""",
    "MQTT-3.8.3-3 no filter": """
        > 82 02 00 01
        x""",
    "MQTT-3-8.3-4 QoS 3": """
        > 82 06 00 01 00 01 'a' 03
        x""",
    "MQTT-3-8.3-4 reserved bits": """
        > 82 06 00 01 00 01 'a' 80
        x""",
    "MQTT-2.3.1-1 packet identifier 0": """
        > 82 06 00 00 00 01 'a' 00
        x""",
    "a filter beyond the packet": """
        > 82 06 00 01 00 05 'a' 00
        x""",
    "a filter without its QoS": """
        > 82 05 00 01 00 01 'a'
        x""",
    "MQTT-3.8.3-1 a filter that is not UTF-8": """
        > 82 06 00 01 00 01 ff 00
        x""",
    "MQTT-3.10.4-4 -5 UNSUBACK, also where there was nothing": """
        > 82 06 00 01 00 01 'a' 00
        < 90 03 00 01 00
        > a2 05 00 02 00 01 'a'
        < b0 02 00 02
        > a2 05 00 03 00 01 'a'
        < b0 02 00 03""",
    "MQTT-3.10.4-6 one UNSUBACK for several filters": """
        > a2 08 00 02 00 01 'a' 00 01 'b'
        < b0 02 00 02
        = 4""",
    "MQTT-3.10.1-1 the flags of UNSUBSCRIBE": """
        > a0 05 00 02 00 01 'a'
        x""",
    "MQTT-3.10.3-2 UNSUBSCRIBE without a filter": """
        > a2 02 00 02
        x""",
}

FIVE = {
    "MQTT-3.8.4-6 a reason code for each filter": """
        > 82 8a 02 00 01 00 00 01 'a' 02 01 00 *256 2f 00
        < 90 05 00 01 00 02 8f""",
    "MQTT-4.7.1-1 a filter that is none, behind another": """
        > 82 0f 00 01 00 00 01 'a' 02 00 05 'a/#/b' 00
        x 81""",
    "MQTT-4.7.3-1 UNSUBSCRIBE with an empty filter": """
        > a2 08 00 02 00 00 00 00 01 'a'
        x 81""",
    "MQTT-3.8.3-2 no filter": """
        > 82 03 00 01 00
        x 82""",
    "MQTT-3.8.3-4 No Local on a shared subscription": """
        > 82 10 00 01 00 00 0a '$share/g/a' 04
        x 82""",
    "MQTT-3.8.3-5 reserved bits": """
        > 82 07 00 01 00 00 01 'a' 40
        x 81""",
    "section 3.8.3.1 retain handling 3": """
        > 82 07 00 01 00 00 01 'a' 30
        x 82""",
    "section 3.8.3.1 QoS 3": """
        > 82 07 00 01 00 00 01 'a' 03
        x 82""",
    "section 3.8.2.1.2 subscription identifier 0": """
        > 82 09 00 01 02 0b 00 00 01 'a' 00
        x 82""",
    "section 3.8.2.1.2 a subscription identifier twice": """
        > 82 0b 00 01 04 0b 01 0b 02 00 01 'a' 00
        x 82""",
    "MQTT-4.8.2-1 -2 share names": """
        > 82 11 00 01 00 00 01 'a' 00 00 07 '$share/' 00
        x 81""",
    "MQTT-3.11.3 reason codes of UNSUBACK": """
        > 82 07 00 01 00 00 01 'a' 00
        < 90 04 00 01 00 00
        > a2 09 00 02 00 00 01 'a' 00 01 'b'
        < b0 05 00 02 00 00 11""",
}


@pytest.mark.parametrize("steps", THREE.values(), ids=THREE.keys())
async def test_mqtt_3_1_1(clients: Clients, name: str, steps: str) -> None:
    await converse(await clients.connect(name, MQTT_3_1_1), steps)


@pytest.mark.parametrize("steps", FIVE.values(), ids=FIVE.keys())
async def test_mqtt_5(clients: Clients, name: str, steps: str) -> None:
    await converse(await clients.connect(name), steps)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
async def test_3_3_5_1_overlapping_subscriptions(clients: Clients, name: str, version: int) -> None:
    client = await clients.connect(name, version)
    await client.subscribe(f"{name}/#", 1)
    await client.subscribe(f"{name}/+", 2)
    await client.send(Publish(f"{name}/a", b"x", 2, packet_id=9))
    (publish,) = [one for one in await client.waiting() if isinstance(one, Publish)]
    assert publish.qos == 2


async def test_3_8_4_3_a_new_subscription_replaces_the_old(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    for qos in (2, 0):
        await client.subscribe(name, qos)
    await client.send(Publish(name, b"x", 1, packet_id=9))
    (publish,) = [one for one in await client.waiting() if isinstance(one, Publish)]
    assert publish.qos == 0


async def test_3_8_3_3_no_local(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    await client.subscribe(name, no_local=True)
    await client.send(Publish(name, b"own"))
    other = await clients.connect(f"{name}-other")
    await other.send(Publish(name, b"other"))
    assert not await other.waiting()
    assert payloads(await client.waiting()) == [b"other"]


async def test_4_8_2_a_shared_subscription_gives_each_message_to_one(
    clients: Clients, name: str
) -> None:
    members = [await clients.connect(f"{name}-{number}") for number in range(3)]
    for member in members:
        await member.subscribe(f"$share/group/{name}/#")
    publisher = await clients.connect(name)
    await publisher.send(*(Publish(f"{name}/a", b"%d" % number) for number in range(30)))
    assert not await publisher.waiting()
    got = [payloads(await member.waiting()) for member in members]
    assert sorted(map(len, got)) == [10, 10, 10]
    assert sorted(int(one) for each in got for one in each) == list(range(30))


WARM = "payload.value > 20"


async def test_where_filters_what_is_delivered(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    properties = Properties(user_properties=(("$where", WARM),))
    assert await client.subscribe(f"{name}/+", 1, properties) == ReasonCode.GRANTED_QOS_1
    messages = [Publish(f"{name}/a", b'{"value":%d}' % value) for value in (19, 21, 20, 30)]
    await client.send(*messages, Publish(f"{name}/a", b"not JSON"))
    assert payloads(await client.waiting()) == [b'{"value":21}', b'{"value":30}']


@pytest.mark.parametrize(
    ("text", "code", "beginning"),
    [
        ("payload.value >", 0x83, "$where:15: "),
        ("", 0x83, "$where:0: "),
        ("(" * 40, 0x97, "$where:32: "),
    ],
)
async def test_where_that_cannot_be_read_is_told(
    clients: Clients, name: str, text: str, code: int, beginning: str
) -> None:
    client = await clients.connect(name)
    properties = Properties(user_properties=(("$where", text),))
    requests = [SubscriptionRequest(f"{name}/a"), SubscriptionRequest(f"{name}/b")]
    await client.send(Subscribe(7, requests, properties))
    suback = await client.receive()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == [code, code]
    assert suback.properties.reason_string is not None
    assert suback.properties.reason_string.startswith(beginning)
    assert len(suback.properties.reason_string.encode()) <= 200
