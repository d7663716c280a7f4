"""Whose a session is in a gateway that is killed: real listeners, users and files."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.mqtt.packets import MQTT_5, ConnAck, Connect, Packet, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.server.passwords.hashing import hash_password
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import RawClient

CONFIG = """
[[listener]]
acl_file = "nothing"
[[listener]]
port = {door}
password_file = "users"
acl_file = "acl"
"""
ACL = """\
user anna
topic readwrite #
user ben
topic readwrite open
"""
HASHED = hash_password(b"secret", cost=4)


@dataclass
class Place:
    gateway: GatewayProcess
    folder: Path
    door: int
    clients: list[RawClient] = field(default_factory=list)

    def write(self, *users: str) -> None:
        text = "".join(f"{user}:{HASHED}\n" for user in users)
        (self.folder / "users").write_text(text)

    async def connect(
        self, client_id: str, username: str, *, will: Will | None = None
    ) -> tuple[RawClient, ConnAck]:
        client = await RawClient.open(self.door)
        self.clients.append(client)
        expiry = Properties(session_expiry_interval=3600)
        await client.send(Connect(client_id, MQTT_5, False, 0, username, b"secret", will, expiry))
        connack = await client.take(ConnAck)
        return client, connack


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    door = free_port()
    gateway = GatewayProcess(tmp_path, CONFIG.format(door=door))
    place = Place(gateway, tmp_path, door)
    (tmp_path / "nothing").write_text("# empty on purpose\n")
    (tmp_path / "acl").write_text(ACL)
    place.write("anna", "ben")
    gateway.start()
    yield place
    for client in place.clients:
        await client.close()
    gateway.kill()


def topics(packets: list[Packet]) -> list[str]:
    return [each.topic for each in packets if isinstance(each, Publish)]


async def test_a_session_is_its_users_also_after_a_kill(place: Place) -> None:
    gone = Will("open", b"gone", properties=Properties(will_delay_interval=6))
    anna, _ = await place.connect("c", "anna")
    await anna.subscribe("#", 1)
    await place.connect("ben", "ben", will=gone)
    await place.connect("cleo", "anna", will=gone)
    place.gateway.kill()
    place.write("anna")  # ben is no user any more
    place.gateway.start()
    watcher, _ = await place.connect("watcher", "anna")
    await watcher.subscribe("open", 1)
    await watcher.send(Publish("secret", b"x", 1, packet_id=1))
    assert topics([await watcher.receive(), await watcher.receive()]) == ["open"]
    await watcher.send(Publish("open", b"last", 1, packet_id=2))
    rest = [await watcher.receive(), await watcher.receive()]
    assert [each.payload for each in rest if isinstance(each, Publish)] == [b"last"]
    log = place.gateway.log()
    assert "the will of client 'ben' of user 'ben' on 'open' is not published: the user" in log
    anna, connack = await place.connect("c", "anna")
    assert connack.session_present
    assert topics(await anna.waiting()) == ["secret", "open"]  # not the will, at QoS 0
