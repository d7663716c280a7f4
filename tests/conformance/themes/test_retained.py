"""Retained messages: sections 3.3.1.3 and 3.8.3.1."""

import pytest

from gateway.mqtt.packets import Packet, Publish
from gateway.mqtt.properties import Properties
from tests.support.raw_client import Clients
from tests.support.versions import VERSIONS


async def retain(clients: Clients, name: str, *levels: str, **fields: object) -> None:
    """Keep a message for each level below `name`; returns when the broker has them."""
    client = await clients.connect(f"{name}-keeper")
    for level in levels:
        await client.send(Publish(f"{name}/{level}", level.encode(), retain=True, **fields))  # type: ignore[arg-type]  # by name
    assert not await client.waiting()


def topics(packets: list[Packet]) -> list[str]:
    return sorted(packet.topic for packet in packets if isinstance(packet, Publish))


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_3_1_6_a_new_subscription_gets_the_last_message(
    clients: Clients, name: str, version: int
) -> None:
    await retain(clients, name, "a", "b")
    await retain(clients, name, "a")
    client = await clients.connect(name, version)
    await client.subscribe(f"{name}/+", 1)
    seen = await client.waiting()
    assert topics(seen) == [f"{name}/a", f"{name}/b"]
    assert all(isinstance(one, Publish) and one.retain for one in seen)


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_3_1_12_a_live_message_is_not_marked(
    clients: Clients, name: str, version: int
) -> None:
    client = await clients.connect(name, version)
    await client.subscribe(f"{name}/#")
    await client.send(Publish(f"{name}/a", b"x", retain=True))
    assert await client.waiting() == [Publish(f"{name}/a", b"x")]


async def test_3_3_1_13_retain_as_published(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    await client.subscribe(f"{name}/#", retain_as_published=True)
    await client.send(Publish(f"{name}/a", b"x", retain=True), Publish(f"{name}/a", b"x"))
    assert await client.waiting() == [
        Publish(f"{name}/a", b"x", retain=True),
        Publish(f"{name}/a", b"x"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_3_1_7_an_empty_payload_clears(clients: Clients, name: str, version: int) -> None:
    await retain(clients, name, "a", "b")
    client = await clients.connect(name, version)
    await client.send(Publish(f"{name}/a", b"", retain=True))
    await client.subscribe(f"{name}/#")
    assert topics(await client.waiting()) == [f"{name}/b"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_3_1_5_a_message_without_retain_changes_nothing(
    clients: Clients, name: str, version: int
) -> None:
    await retain(clients, name, "a")
    client = await clients.connect(name, version)
    await client.send(Publish(f"{name}/a", b"live"))
    await client.subscribe(f"{name}/#")
    assert await client.waiting() == [Publish(f"{name}/a", b"a", retain=True)]


@pytest.mark.parametrize(("handling", "expected"), [(0, [1, 1]), (1, [1, 0]), (2, [0, 0])])
async def test_3_3_1_9_to_11_retain_handling(
    clients: Clients, name: str, handling: int, expected: list[int]
) -> None:
    await retain(clients, name, "a")
    client = await clients.connect(name)
    brought = []
    for _ in expected:
        await client.subscribe(f"{name}/#", retain_handling=handling)
        brought.append(len(await client.waiting()))
    assert brought == expected


async def test_4_8_2_a_shared_subscription_gets_none(clients: Clients, name: str) -> None:
    await retain(clients, name, "a")
    client = await clients.connect(name)
    await client.subscribe(f"$share/g/{name}/#")
    assert not await client.waiting()


async def test_3_3_1_8_the_lower_qos_counts(clients: Clients, name: str) -> None:
    client = await clients.connect(name)
    await client.send(Publish(f"{name}/a", b"x", 1, retain=True, packet_id=3))
    await client.receive()
    await client.subscribe(f"{name}/#", 0)
    assert await client.waiting() == [Publish(f"{name}/a", b"x", retain=True)]


async def test_3_3_2_6_the_expiry_interval_counts_down(clients: Clients, name: str) -> None:
    await retain(clients, name, "a", properties=Properties(message_expiry_interval=100))
    await retain(clients, name, "b", properties=Properties(message_expiry_interval=0))
    client = await clients.connect(name)
    await client.subscribe(f"{name}/#")
    (publish,) = await client.waiting()
    assert isinstance(publish, Publish)
    assert publish.topic == f"{name}/a"
    assert publish.properties.message_expiry_interval in range(80, 101)


async def test_where_filters_retained_messages(clients: Clients, name: str) -> None:
    keeper = await clients.connect(f"{name}-keeper")
    for value in (19, 21):
        await keeper.send(Publish(f"{name}/{value}", b'{"value":%d}' % value, retain=True))
    assert not await keeper.waiting()
    client = await clients.connect(name)
    properties = Properties(user_properties=(("$where", "payload.value > 20"),))
    await client.subscribe(f"{name}/+", 0, properties)
    assert topics(await client.waiting()) == [f"{name}/21"]
