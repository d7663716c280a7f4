"""The socket for the commands of this machine, whatever the listeners say."""

import asyncio
import logging
import os
import socket
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.gateway import Gateway
from gateway.app.start import start
from gateway.config.load import load
from gateway.config.operator_socket import NAME
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.ports import free_port
from tests.support.raw_client import RawClient

CLOSED = """
[[listener]]
port = {port}
{listener}
[[access.role]]
name = "sensor"
users = ["sensor-*"]
write = ["sensors/%u/#"]
[uplink]
"""


async def started(
    folder: Path, stack: AsyncExitStack, data: str = "d", listener: str = ""
) -> Gateway:
    file = folder / "gateway.toml"
    file.write_text(CLOSED.format(port=free_port(), listener=listener))
    gateway = Gateway(load(file), folder / data, stack)
    await start(gateway, durable=True)
    return gateway


async def connect(path: Path, stack: AsyncExitStack) -> RawClient:
    reader, writer = await asyncio.open_unix_connection(path)
    client = RawClient(reader, writer, MQTT_5)
    stack.push_async_callback(client.close)
    await client.say_connect("operator")
    return client


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a folder whose path is short, as sockets need it."""
    monkeypatch.chdir(tmp_path)
    return Path()


async def test_an_operator_may_do_everything_whatever_roles_there_are(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        await started(folder, stack)
        path = folder / "d" / NAME
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert path.stat().st_uid == os.geteuid()
        operator = await connect(path, stack)
        await operator.send(Publish("$CONTROL/tidegate/uplink", b"pause", qos=1, packet_id=1))
        assert await operator.receive() == PubAck(1)
        filters = ("sensors/#", "$SYS/#", "$SYS/broker/tidegate/log")
        requests = [SubscriptionRequest(each, 1) for each in filters]
        await operator.send(Subscribe(2, requests))
        answer = await operator.receive()
        assert isinstance(answer, SubAck)
        assert answer.reason_codes == [ReasonCode.GRANTED_QOS_1] * 3
    assert not path.exists()


async def test_loopback_stays_closed(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await started(folder, stack, listener="allow_anonymous = false")
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.listeners[0].port)
        client = RawClient(reader, writer, MQTT_5)
        stack.push_async_callback(client.close)
        await client.send(Connect("c"))
        answer = await client.receive()
        assert isinstance(answer, ConnAck)
        assert answer.reason_code is ReasonCode.NOT_AUTHORIZED


async def test_what_a_killed_gateway_left_is_replaced(folder: Path) -> None:
    (folder / "d").mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "d" / NAME))
    async with AsyncExitStack() as stack:
        await started(folder, stack)
        await connect(folder / "d" / NAME, stack)


async def test_gateways_with_different_data_folders_have_sockets_of_their_own(folder: Path) -> None:
    async with AsyncExitStack() as outer:
        first = await started(folder, outer, "one")
        async with AsyncExitStack() as stack:
            second = await started(folder, stack, "two")
            await connect(folder / "one" / NAME, stack)
            await connect(folder / "two" / NAME, stack)
            assert [len(each.broker.clients) for each in (first, second)] == [1, 1]
        await connect(folder / "one" / NAME, outer)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("a" * 100, f"{'a' * 100}/{NAME} has 114 bytes; at most 107"),
        ("file", "cannot listen on file/tidegate.sock: there is a file that is no socket"),
        ("used", "cannot listen on used/tidegate.sock: another process listens there"),
    ],
)
async def test_without_it_a_gateway_works_all_the_same(
    folder: Path, caplog: pytest.LogCaptureFixture, data: str, text: str
) -> None:
    caplog.set_level(logging.WARNING)
    path = folder / data / NAME
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as other:
        if data == "file":
            path.write_text("")
        elif data == "used":
            other.bind(str(path))
            other.listen()
        async with AsyncExitStack() as stack:
            gateway = await started(folder, stack, data)
            assert gateway.operator_socket is None
            assert len(gateway.listeners) == 1
    assert f"no socket for commands: {text}. They reach" in caplog.text


async def test_a_listener_of_the_configuration_may_have_its_place(folder: Path) -> None:
    file = folder / "gateway.toml"
    file.write_text(f'[[listener]]\npath = "d/{NAME}"\n')
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), folder / "d", stack)
        await start(gateway, durable=True)
        assert gateway.operator_socket is None
        await connect(folder / "d" / NAME, stack)
