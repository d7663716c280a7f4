"""Will messages: section 3.1.2.5, the will delay of section 3.1.3.2.2, and section 3.14.4."""

import pytest

from gateway.mqtt.packets import Disconnect, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.raw_client import Clients, RawClient
from tests.support.versions import VERSIONS

LASTING = Properties(session_expiry_interval=60)


async def watch(clients: Clients, name: str) -> RawClient:
    watcher = await clients.connect(f"{name}-watcher")
    await watcher.subscribe(f"{name}/#", 2)
    return watcher


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_3_1_2_8_a_lost_connection_publishes_the_will(
    clients: Clients, name: str, version: int, qos: int
) -> None:
    watcher = await watch(clients, name)
    client = await clients.connect(name, version, will=Will(f"{name}/will", b"gone", qos))
    client.reset()
    expected = Publish(f"{name}/will", b"gone", qos, packet_id=1 if qos else 0)
    assert await watcher.receive() == expected


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_1_2_10_a_disconnect_drops_the_will(
    clients: Clients, name: str, version: int
) -> None:
    watcher = await watch(clients, name)
    client = await clients.connect(name, version, will=Will(f"{name}/will", b"gone"))
    await client.send(Disconnect())
    assert not await client.until_closed()
    assert not await watcher.waiting()


async def test_3_14_4_3_a_disconnect_can_ask_for_the_will(clients: Clients, name: str) -> None:
    watcher = await watch(clients, name)
    client = await clients.connect(name, will=Will(f"{name}/will", b"gone"))
    await client.send(Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE))
    assert await watcher.receive() == Publish(f"{name}/will", b"gone")


@pytest.mark.parametrize("version", VERSIONS)
async def test_3_1_2_8_a_protocol_error_publishes_the_will(
    clients: Clients, name: str, version: int
) -> None:
    watcher = await watch(clients, name)
    client = await clients.connect(name, version, will=Will(f"{name}/will", b"gone"))
    await client.send_bytes(b"\x00\x00")
    assert await watcher.receive() == Publish(f"{name}/will", b"gone")


async def test_3_1_2_15_a_retained_will(clients: Clients, name: str) -> None:
    client = await clients.connect(name, will=Will(f"{name}/will", b"gone", retain=True))
    client.reset()
    watcher = await watch(clients, name)
    seen = await watcher.waiting()
    while not seen:
        seen = await watcher.waiting()
    # retained if the will came first, live otherwise
    assert seen[0] in [
        Publish(f"{name}/will", b"gone", retain=True),
        Publish(f"{name}/will", b"gone"),
    ]
    late = await clients.connect(f"{name}-late")
    await late.subscribe(f"{name}/#")
    assert await late.waiting() == [Publish(f"{name}/will", b"gone", retain=True)]


async def test_3_1_3_9_a_new_connection_cancels_a_delayed_will(clients: Clients, name: str) -> None:
    watcher = await watch(clients, name)
    delayed = Will(f"{name}/will", b"gone", properties=Properties(will_delay_interval=30))
    client = await clients.connect(name, will=delayed, properties=LASTING)
    client.reset()
    await clients.connect(name, clean_start=False, properties=LASTING)
    assert not await watcher.waiting()


async def test_3_1_3_2_2_a_will_waits_for_its_delay(clients: Clients, name: str) -> None:
    watcher = await watch(clients, name)
    delayed = Will(f"{name}/will", b"gone", properties=Properties(will_delay_interval=1))
    client = await clients.connect(name, will=delayed, properties=LASTING)
    client.reset()
    assert not await watcher.waiting()
    assert await watcher.receive() == Publish(f"{name}/will", b"gone")


async def test_3_1_2_8_the_end_of_the_session_publishes_a_delayed_will(
    clients: Clients, name: str
) -> None:
    watcher = await watch(clients, name)
    delayed = Will(f"{name}/will", b"gone", properties=Properties(will_delay_interval=30))
    client = await clients.connect(name, will=delayed)
    client.reset()
    assert await watcher.receive() == Publish(f"{name}/will", b"gone")


async def test_3_1_3_2_properties_of_a_will_are_passed_on(clients: Clients, name: str) -> None:
    watcher = await watch(clients, name)
    properties = Properties(content_type="text/plain", user_properties=(("a", "1"), ("a", "2")))
    will = Will(f"{name}/will", b"gone", properties=properties)
    (await clients.connect(name, will=will)).reset()
    assert await watcher.receive() == Publish(f"{name}/will", b"gone", properties=properties)
