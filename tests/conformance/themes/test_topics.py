"""Topic names and topic filters: section 4.7."""

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.raw_client import Clients

MATCHES = [
    # section 4.7.1.2, the multi-level wildcard
    ("sport/tennis/player1/#", "sport/tennis/player1", True),
    ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
    ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
    ("sport/tennis/player1/#", "sport/tennis/player2", False),
    ("sport/tennis/player1/#", "sport/tennis/player10", False),
    ("sport/#", "sport", True),
    ("sport/#", "sport/", True),
    ("#", "sport/tennis", True),
    ("#", "/", True),
    # section 4.7.1.3, the single-level wildcard
    ("sport/tennis/+", "sport/tennis/player1", True),
    ("sport/tennis/+", "sport/tennis/player1/ranking", False),
    ("sport/+", "sport", False),
    ("sport/+", "sport/", True),
    ("+/tennis/#", "sport/tennis/player1", True),
    ("sport/+/player1", "sport/tennis/player1", True),
    ("sport/+/player1", "sport//player1", True),
    ("+/+", "/finance", True),
    ("/+", "/finance", True),
    ("+", "/finance", False),
    ("+", "finance", True),
    ("+/+/+", "/finance", False),
    # section 4.7.2, topics that begin with $
    ("#", "$CONTROL/tidegate/x", False),
    ("+/tidegate/x", "$CONTROL/tidegate/x", False),
    ("$CONTROL/#", "$CONTROL/tidegate/x", True),
    ("$CONTROL/tidegate/+", "$CONTROL/tidegate/x", True),
    # section 4.7.3
    ("ACCOUNTS", "Accounts", False),
    ("accounts payable", "accounts payable", True),
    ("/finance", "finance", False),
    ("finance/", "finance", False),
    ("a//b", "a//b", True),
    ("a/b", "a//b", False),
    ("Grüße/+", "Grüße/☕", True),
    ("\ufeffa", "a", False),
    ("a+b", "a+b", None),
    # MQTT-4.7.1-1, MQTT-4.7.1-2: what is no filter
    ("sport/tennis#", "", None),
    ("sport/tennis/#/ranking", "", None),
    ("sport+", "", None),
    ("sport/+x/y", "", None),
    ("##", "", None),
    ("#/", "", None),
    ("++", "", None),
]


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize(("topic_filter", "topic", "matches"), MATCHES)
async def test_matching(
    clients: Clients, name: str, version: int, topic_filter: str, topic: str, matches: bool | None
) -> None:
    client = await clients.connect(name, version)
    if matches is None:
        await client.send(Subscribe(1, [SubscriptionRequest(topic_filter)]))
        ended = [type(packet) for packet in await client.until_closed()]
        assert ended == [Disconnect] * (version == MQTT_5)
        return
    assert await client.subscribe(topic_filter) == ReasonCode.SUCCESS
    payload = name.encode()  # whatever else `#` brings is another test's
    await client.send(Publish(topic, payload))
    found = [
        packet.topic
        for packet in await client.waiting()
        if isinstance(packet, Publish) and packet.payload == payload
    ]
    assert found == ([topic] if matches else [])


async def test_4_7_3_3_the_longest_topic(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    topic = f"{name}/".ljust(65_535, "x")
    assert await client.subscribe(topic) == ReasonCode.SUCCESS
    assert await client.subscribe(f"{name}/#") == ReasonCode.SUCCESS
    await client.send(Publish(topic, b"x"))
    assert await client.waiting() == [Publish(topic, b"x")]
