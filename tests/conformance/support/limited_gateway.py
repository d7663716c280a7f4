"""A gateway with limits, with users and with WebSocket."""

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess

USER, PASSWORD = "anna", b"secret"

CONFIG = """
[broker]
connect_timeout = {connect_timeout}
topic_alias_maximum = 0
receive_maximum = 5
maximum_session_expiry = 100
maximum_topic_levels = 5
check_payload_format = true
response_information = "answers/"

[[listener]]
maximum_packet_size = 1024

[[listener]]
port = {keep_alive}
maximum_keep_alive = 1

[[listener]]
port = {users}
password_file = "{folder}/users"

[[listener]]
port = {websocket}
websocket = true
"""


CONNECT_TIMEOUT = 8
"""Seconds: as long as a machine may stand still before a client of the tests has said CONNECT."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the gateway's listeners."""

    limits: int
    keep_alive: int
    users: int
    websocket: int


def start(folder: Path) -> tuple[GatewayProcess, Ports]:
    """Start the gateway with its files in `folder`."""
    (folder / "users").write_text(f"{USER}:{hashed(PASSWORD)}\n", encoding="utf-8")
    keep_alive, users, websocket = free_port(), free_port(), free_port()
    config = CONFIG.format(
        connect_timeout=CONNECT_TIMEOUT,
        keep_alive=keep_alive,
        users=users,
        websocket=websocket,
        folder=folder,
    )
    process = GatewayProcess(folder, config).start()
    return process, Ports(process.port, keep_alive, users, websocket)


def hashed(password: bytes) -> str:
    """Return a password as mosquitto_passwd writes it in its older form."""
    salt = b"twelve bytes"
    parts = [salt, hashlib.sha512(password + salt).digest()]
    return "$".join(["$6", *(base64.b64encode(part).decode() for part in parts)])
