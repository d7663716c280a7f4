"""Mount points beside those of a real Mosquitto, on disk, with rules and at a reload."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import RawClient
from tests.support.waiting import listens, until

CONFIG = """
[[listener]]
[[listener]]
port = {mounted}
mount_point = "site/1/"
{acl}
[[channel]]
name = "work"
filter = "site/1/work/#"
[[channel]]
name = "other"
filter = "site/#"
"""
LASTING: dict[str, Any] = {
    "properties": Properties(session_expiry_interval=600),
    "clean_start": False,
}


@pytest.fixture
def mounted() -> int:
    return free_port()


@pytest.fixture
def gateway(tmp_path: Path, mounted: int) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path, CONFIG.format(mounted=mounted, acl="")).start()
    until(lambda: listens(mounted), "the other listener is there", process.log)
    yield process
    process.kill()


async def _client(port: int, client_id: str, version: int = MQTT_5, **fields: object) -> RawClient:
    client = await RawClient.open(port, version)
    await client.connect_as(client_id, **fields)
    return client


async def _conversation(plain: int, mounted: int, version: int) -> list[list[tuple[object, ...]]]:
    """Return what clients of a broker get, one outside of the mount point and one inside."""
    outside = await _client(plain, "outside", version)
    await outside.send(Publish("site/1/kept", b"k", retain=True), Publish("kept", b"", retain=True))
    await outside.waiting()
    will = Will("state", b"gone", 1, retain=True)
    leaving = await _client(mounted, "leaving", version, will=will)
    inside = await _client(mounted, "inside", version)
    await inside.subscribe("#", 2)
    await outside.subscribe("#", 2)
    for number, topic in enumerate(("a", "a/b", "/", "$SYS/x", "$CONTROL/x", "site/1/a"), start=1):
        await inside.send(Publish(topic, b"1", number % 2, packet_id=number % 2 and number))
    of_inside = await inside.waiting()
    await outside.send(Publish("a", b"3"), Publish("site/1/a", b"3", 1, packet_id=9))
    for topic in ("site/1/down/1", "site/2/down/1", "site/10", "sit"):
        await outside.send(Publish(topic, b"2"))
    of_outside = await outside.waiting()
    await leaving.close()
    came = []
    for each, packets in ((outside, of_outside), (inside, of_inside)):
        found = list[tuple[object, ...]]()
        while not any(message[1] == b"gone" for message in found):
            packet = packets.pop(0) if packets else await each.receive()
            if isinstance(packet, Publish):
                found.append((packet.topic, packet.payload, packet.qos, packet.retain))
        came.append(sorted(found, key=repr))
        await each.close()
    return came


@pytest.mark.mosquitto
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
async def test_clients_get_what_those_of_mosquitto_get(
    tmp_path: Path, gateway: GatewayProcess, mounted: int, version: int
) -> None:
    port = free_port()
    extra = f"listener {port} 127.0.0.1\nallow_anonymous true\nmount_point site/1/\n"
    mosquitto = Mosquitto(tmp_path, extra)
    mosquitto.start()
    expected = await _conversation(mosquitto.port, port, version)
    inside = expected[1]
    if all(str(message[0]).startswith("site/1/") for message in inside):
        # 2.0.11 does not remove it, which 2.0.12 mended (its issue 2244)
        inside[:] = [(str(topic)[len("site/1/") :], *rest) for topic, *rest in inside]
    assert await _conversation(gateway.port, mounted, version) == expected
    assert ("site/1/$CONTROL/x", b"1", 1, False) in expected[0]
    mosquitto.kill()


async def test_a_session_is_on_disk_with_whole_topics(
    gateway: GatewayProcess, mounted: int
) -> None:
    inside = await _client(mounted, "inside", **LASTING)
    assert await inside.subscribe("down/#", 1) == 1
    assert await inside.subscribe("$share/jobs/work/+", 1) == 1
    await inside.close()
    outside = await _client(gateway.port, "outside")
    await outside.send(
        Publish("site/1/down/a", b"1", 1, packet_id=1, retain=True),
        Publish("site/1/work/b", b"2", 1, packet_id=2),
        Publish("down/c", b"3", 1, packet_id=3),
    )
    for _ in range(3):
        await outside.receive()
    await outside.close()
    gateway.kill()
    gateway.start()
    until(lambda: listens(mounted), "the other listener is there", gateway.log)
    inside = await _client(mounted, "inside", **LASTING)
    assert inside.connack.session_present
    came = [await inside.receive() for _ in range(2)]
    assert [(each.topic, each.payload) for each in came if isinstance(each, Publish)] == [
        ("down/a", b"1"),
        ("work/b", b"2"),
    ]
    assert await inside.waiting() == []
    await inside.close()


async def test_a_consumer_behind_it_returns_a_message(
    gateway: GatewayProcess, mounted: int
) -> None:
    """A channel whose topics are not all in its part has only the part of it to give."""
    inside, outside = await _client(mounted, "inside"), await _client(gateway.port, "outside")
    assert await inside.subscribe("$queue/other", 1) == ReasonCode.NOT_AUTHORIZED
    assert await inside.subscribe("$queue/work", 1) == 1
    await outside.send(Publish("site/1/work/b", b"job", 1, packet_id=1))
    first = await inside.receive()
    assert isinstance(first, Publish)
    identifier = dict(first.properties.user_properties)["id"].encode()
    commands = "$CONTROL/tidegate/channel/work/"
    await inside.send(Publish(commands + "touch", identifier, 1, packet_id=2))
    assert await inside.receive() == PubAck(2)
    await inside.send(Publish(commands + "requeue", identifier, 1, packet_id=3))
    answer, again = sorted([await inside.receive() for _ in range(2)], key=repr)
    assert isinstance(again, Publish)
    assert (answer, again.topic, again.payload) == (PubAck(3), "work/b", b"job")
    assert again.properties.user_properties[-1] == ("attempt", "2")
    await inside.subscribe("$queue/other/work/#", 1)
    await outside.send(Publish("site/2/work/x", b"", 1, packet_id=2))
    came = [each.topic for each in await inside.waiting() if isinstance(each, Publish)]
    assert came == ["work/b"]
    await inside.close()
    await outside.close()


async def test_another_mount_point_ends_connections_and_old_sessions(
    tmp_path: Path, gateway: GatewayProcess, mounted: int
) -> None:
    inside = await _client(mounted, "inside", **LASTING)
    await inside.subscribe("#", 1)
    config = (tmp_path / "gateway.toml").read_text().replace("site/1/", "site/2/")
    gateway.configure(config)
    assert tidegate("check", tmp_path / "gateway.toml").returncode == 0
    assert gateway.process is not None
    gateway.process.send_signal(1)
    (goodbye,) = await inside.until_closed()
    assert getattr(goodbye, "reason_code", None) == 0x98
    await inside.close()
    inside = await _client(mounted, "inside", **LASTING)
    assert not inside.connack.session_present
    await inside.subscribe("#", 1)
    await inside.send(Publish("x", b"", 1, packet_id=1))
    outside = await _client(gateway.port, "outside")
    await outside.subscribe("#")
    await outside.send(Publish("site/2/y", b""))
    came = [await inside.receive() for _ in range(3)]
    assert [each.topic for each in came if isinstance(each, Publish)] == ["x", "y"]
    until(lambda: "ends its session" in gateway.log(), "the log tells", gateway.log)
    await inside.close()
    await outside.close()
