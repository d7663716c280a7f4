"""Certificates, WebSocket, and secrets in files, at brokers that ask for them."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.fleet.uplinks import add_rows, running, uplink_settings
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto


def _set_password(users: Path) -> None:
    subprocess.run(["mosquitto_passwd", "-b", "-c", users, "barn", "geheim ü"], check=True)


@pytest.mark.mosquitto
async def test_mosquitto_asks_for_a_certificate_of_the_gateway(
    store: Store, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    server, barn = authority.issue("localhost"), authority.issue("barn")
    port = free_port()
    broker = Mosquitto(
        tmp_path,
        f"listener {port} 127.0.0.1\ncafile {authority.ca_file}\n"
        f"certfile {server.certificate}\nkeyfile {server.key}\n"
        "require_certificate true\nuse_identity_as_username true\n",
    )
    broker.start()
    url = f"mqtts://localhost:{port}"
    ca_file = Path(authority.ca_file)
    add_rows(store, 1, 5)
    async with running(store, uplink_settings(url=url, ca_file=ca_file)) as uplink:
        await until(lambda: uplink.state == "disconnected")
    assert store.outbox.rows == 5
    own: dict[str, Any] = {"tls_certificate": Path(barn.certificate), "tls_key": Path(barn.key)}
    async with running(store, uplink_settings(url=url, ca_file=ca_file, **own)):
        await until(lambda: store.outbox.rows == 0)
    broker.kill()


@pytest.mark.mosquitto
async def test_mosquitto_asks_for_a_user_and_a_password(store: Store, tmp_path: Path) -> None:
    users = tmp_path / "users"
    await asyncio.to_thread(_set_password, users)
    broker = Mosquitto(tmp_path, f"password_file {users}\n")
    config = tmp_path / "mosquitto" / "mosquitto.conf"
    config.write_text(config.read_text().replace("anonymous true", "anonymous false"))
    broker.start()
    name, password = tmp_path / "name", tmp_path / "password"
    name.write_text("barn\n")
    password.write_text("another\n")
    add_rows(store, 1, 5)
    settings = uplink_settings(broker.port, username_file=name, password_file=password)
    async with running(store, settings) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert "Not authorized" in str(store.counters.values["tidegate/uplink/error"])
        password.write_text("geheim ü\n", encoding="utf-8")  # read anew for each connection
        await until(lambda: store.outbox.rows == 0)
    broker.kill()


@pytest.mark.uncovered
async def test_messages_go_up_over_websocket_and_tls(store: Store, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.issue("localhost")
    port = free_port()
    fleet = GatewayProcess(
        tmp_path,
        f"""
        [[listener]]
        port = 1
        [[listener]]
        port = {port}
        websocket = true
        tls_certificate = "{server.certificate}"
        tls_key = "{server.key}"
        """,
    ).start()
    collector = FleetCollector(fleet.port)
    add_rows(store, 1, 200, payload=bytes(5_000))
    url = f"wss://localhost:{port}/mqtt"
    async with running(store, uplink_settings(url=url, ca_file=Path(authority.ca_file))):
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: len(collector.data) == 200)
    assert [message.name[2] for message in collector.data] == list(range(1, 201))
    assert all(message.payload == bytes(5_000) for message in collector.data)
    collector.close()
    fleet.kill()


@pytest.mark.uncovered
async def test_what_is_no_websocket_is_said(store: Store, tmp_path: Path) -> None:
    fleet = GatewayProcess(tmp_path).start()
    settings = uplink_settings(url=f"ws://127.0.0.1:{fleet.port}")
    async with running(store, settings) as uplink:
        await until(lambda: uplink.state == "disconnected")
        error = str(store.counters.values["tidegate/uplink/error"])
        assert "WebSocket" in error or "before CONNACK" in error
    fleet.kill()
