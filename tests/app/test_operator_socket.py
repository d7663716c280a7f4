"""The socket for the commands of this machine, whatever the listeners say."""

import asyncio
import logging
import os
import socket
import stat
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.app import operator_socket as module
from gateway.app.parts import Run
from gateway.config.load import bare, load
from gateway.config.operator_socket import folders_of, is_safe, own_folders, socket_name
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
from gateway.server.listening.connection_limits import ProcessConnections
from tests.support.gateway_here import Gateway
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


RUN = Path("run")


async def started(
    folder: Path, stack: AsyncExitStack, data: str = "d", listener: str = ""
) -> Gateway:
    file = folder / "gateway.toml"
    file.write_text(CLOSED.format(port=free_port(), listener=listener))
    gateway = Gateway(load(file), folder / data, stack)
    await gateway.start()
    return gateway


async def connect(path: Path, stack: AsyncExitStack) -> RawClient:
    reader, writer = await asyncio.open_unix_connection(path)
    client = RawClient(reader, writer, MQTT_5)
    stack.push_async_callback(client.close)
    await client.connect_as("operator")
    return client


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a folder whose path is short, as sockets need it, with another for sockets in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "own_folders", lambda: [RUN])
    return Path()


def socket_of(data: Path) -> Path:
    return RUN / socket_name(data)


async def test_an_operator_may_do_everything_whatever_roles_there_are(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        await started(folder, stack)
        path = socket_of(folder / "d")
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert path.stat().st_uid == os.geteuid()
        operator = await connect(path, stack)
        await operator.send(Publish("$CONTROL/tidegate/uplink", b"pause", qos=1, packet_id=1))
        assert await operator.receive() == PubAck(1)
        filters = ("sensors/#", "$SYS/#", "$SYS/broker/tidegate/log")
        requests = [SubscriptionRequest(each, 1) for each in filters]
        await operator.send(Subscribe(2, requests))
        assert (await operator.take(SubAck)).reason_codes == [ReasonCode.GRANTED_QOS_1] * 3
    assert not path.exists()


async def test_loopback_stays_closed(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await started(folder, stack, listener="allow_anonymous = false")
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.listeners[0].port)
        client = RawClient(reader, writer, MQTT_5)
        stack.push_async_callback(client.close)
        await client.send(Connect("c"))
        assert (await client.take(ConnAck)).reason_code is ReasonCode.NOT_AUTHORIZED


async def test_what_killed_gateways_left_is_replaced_and_removed(folder: Path) -> None:
    for path in (folder / "d", folder / "other", RUN):
        path.mkdir()
    old, young = RUN / "1.2.sock", RUN / "1.3.sock"
    for path in (socket_of(folder / "d"), old, young):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    with socket.socket(socket.AF_UNIX) as other:
        used = socket_of(folder / "other")
        other.bind(str(used))
        other.listen()
        for path in (old, used):
            os.utime(path, (1, 1))
        async with AsyncExitStack() as stack:
            await started(folder, stack)
            await connect(socket_of(folder / "d"), stack)
        assert (old.exists(), young.exists(), used.exists()) == (False, True, True)


async def test_gateways_with_different_data_folders_have_sockets_of_their_own(folder: Path) -> None:
    async with AsyncExitStack() as outer:
        first = await started(folder, outer, "one")
        async with AsyncExitStack() as stack:
            second = await started(folder, stack, "two")
            await connect(socket_of(folder / "one"), stack)
            await connect(socket_of(folder / "two"), stack)
            assert [len(each.broker.clients) for each in (first, second)] == [1, 1]
        await connect(socket_of(folder / "one"), outer)


def cannot(folder: Path, fault: str) -> str:
    """Make something that stands in the way of the socket, and return what is said of it."""
    (folder / "d").mkdir()
    path = socket_of(folder / "d")
    if fault == "no folder":
        return f"{RUN}: No such file or directory"
    if fault == "long":
        return f"{RUN}/{path.name} has {len(str(path))} bytes; at most 107"
    if fault == "a file in place of the folder":
        RUN.write_text("")
        return f"{RUN}: another user may change what is in it"
    RUN.mkdir()
    if fault == "an open folder":
        RUN.chmod(0o777)
        return f"{RUN}: another user may change what is in it"
    path.write_text("")
    return f"cannot listen on {path}: there is a file that is no socket"


@pytest.mark.parametrize(
    "fault",
    ["no folder", "long", "a file in place of the folder", "an open folder", "a file in its place"],
)
async def test_without_it_a_gateway_works_all_the_same(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    caplog.set_level(logging.WARNING)
    place = {"no folder": Path("no/run"), "long": Path("a" * 100)}.get(fault, RUN)
    monkeypatch.setattr(f"{__name__}.RUN", place)
    text = cannot(folder, fault)
    async with AsyncExitStack() as stack:
        gateway = await started(folder, stack)
        assert gateway.operator_socket is None
        assert len(gateway.listeners) == 1
    assert f"no socket for commands: {text}. They reach" in caplog.text


async def test_the_next_place_is_taken_where_the_first_cannot_be_had(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "own_folders", lambda: [Path("no/run"), RUN])
    async with AsyncExitStack() as stack:
        await started(folder, stack)
        await connect(socket_of(folder / "d"), stack)


def test_without_a_data_folder_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(bare(1883), Path("/no/such"), AsyncExitStack())
    asyncio.run(module.bind_operator_socket(run, cast("Any", None), ProcessConnections(1)))
    assert "no socket for commands: /no/such: No such file" in caplog.text


def test_where_sockets_are(monkeypatch: pytest.MonkeyPatch) -> None:
    users = [Path("/run/user/5/tidegate"), Path("/tmp/tidegate-5")]
    assert folders_of(5) == [Path("/run/tidegate"), *users]
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 5)
    assert own_folders() == users
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/barn:/run/other")
    assert own_folders() == [Path("/run/barn"), *users]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert own_folders()[:2] == [Path("/run/barn"), Path("/run/tidegate")]


def test_a_folder_of_another_user_is_not_safe(tmp_path: Path) -> None:
    owner = tmp_path.stat().st_uid
    assert is_safe(tmp_path, owner)
    assert is_safe(tmp_path, owner + 1) == (owner == 0)
