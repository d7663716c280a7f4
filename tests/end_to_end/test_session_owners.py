"""Whose a session is in a gateway that is killed: real listeners, users and files."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, ConnAck, Connect, PubAck, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.passwords.hashing import hash_password
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[[listener]]
[[listener]]
port = {door}
password_file = "users"
acl_file = "acl"
[[listener]]
port = {open}
password_file = "users"
acl_file = "acl"
session_takeover = "anyone"
"""
ACL = """\
user anna
topic readwrite #
user ben
topic readwrite open
"""
HASHED = hash_password(b"secret", cost=4)
EXPIRY = Properties(session_expiry_interval=3600)


@dataclass
class Place:
    gateway: GatewayProcess
    folder: Path
    door: int
    open: int

    def write(self, *users: str) -> None:
        (self.folder / "users").write_text("".join(f"{user}:{HASHED}\n" for user in users))

    async def connect(
        self,
        client_id: str,
        username: str,
        port: int,
        *,
        version: int = MQTT_5,
        will: Will | None = None,
    ) -> tuple[RawClient, ConnAck]:
        client = await Clients(port).open()
        properties = EXPIRY if version == MQTT_5 else Properties()
        connect = Connect(
            client_id, version, False, 0, username, b"secret", will, properties
        )
        client.version = version
        await client.send(connect)
        connack = await client.receive()
        assert isinstance(connack, ConnAck)
        return client, connack


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    door, open_ = free_port(), free_port()
    gateway = GatewayProcess(tmp_path, CONFIG.format(door=door, open=open_))
    place = Place(gateway, tmp_path, door, open_)
    (tmp_path / "acl").write_text(ACL)
    place.write("anna", "ben")
    gateway.start()
    yield place
    gateway.kill()
