import asyncio
import os
import socket
from pathlib import Path

import pytest

from gateway.broker.connecting.connection_info import Anonymous
from gateway.errors import StartError
from gateway.mqtt.packets import MQTT_3_1_1, PubAck, Publish, Will
from gateway.server.listening import listener as listener_module
from gateway.server.listening.listener import Listener, holder_of
from gateway.settings.listener import ListenerSettings
from tests.support.disk.storage import Store, until
from tests.support.processes.server import HOST, HeldWriter, Server
from tests.support.raw_client import RawClient


async def test_nobody_is_let_in_before_the_gateway_is_ready(held: Server) -> None:
    listener = Listener(ListenerSettings(HOST, 0), Anonymous(), held.turn)
    await listener.bind()
    with pytest.raises(ConnectionRefusedError):
        await RawClient.open(listener.port)
    await listener.serve()
    await (await RawClient.open(listener.port)).close()
    await listener.close()


async def test_a_busy_port_is_named(held: Server) -> None:
    second = Listener(ListenerSettings(HOST, held.port), Anonymous(), held.turn)
    with pytest.raises(StartError, match=f"cannot listen on {HOST}:{held.port}: .*in use"):
        await second.bind()
    await second.serve()
    await second.close()


async def test_a_port_that_another_takes_between_bind_and_serve(held: Server) -> None:
    first, second = (Listener(ListenerSettings(HOST, 0), Anonymous(), held.turn) for _ in range(2))
    await first.bind()
    second.port = first.port
    await second.bind()
    await first.serve()
    with pytest.raises(StartError, match="in use"):
        await second.serve()
    await second.close()
    await first.close()


async def test_an_address_that_is_not_ours_is_named(held: Server) -> None:
    with pytest.raises(StartError, match=r"cannot listen on 192\.0\.2\.1:"):
        await Listener(ListenerSettings("192.0.2.1", 1883), Anonymous(), held.turn).bind()


async def test_ipv6(held: Server) -> None:
    listener = Listener(ListenerSettings("::1", 0), Anonymous(), held.turn)
    try:
        await listener.bind()
    except StartError:
        pytest.skip("this machine does not allow IPv6")
    await listener.serve()
    reader, writer = await asyncio.open_connection("::1", listener.port)
    client = RawClient(reader, writer, MQTT_3_1_1)
    await client.send_bytes(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01c")
    await client.receive()
    (connected,) = held.broker.clients.values()
    assert connected.peer.startswith("[::1]:")
    await client.close()
    await listener.close()


@pytest.mark.uncovered
async def test_a_fleet_that_comes_back_at_once_finds_room(held: Server) -> None:
    """While the event loop is busy, as it is here, the kernel takes the connections."""
    sockets = [socket.create_connection((HOST, held.port), 0.5) for _ in range(500)]
    await until(lambda: held.counters.count("tidegate/connections/open") == 500)
    for each in sockets:
        each.close()


async def test_the_kernel_asks_silent_clients_whether_they_are_there(held: Server) -> None:
    await held.clients.connect()
    (client,) = held.listener.connections.clients
    assert client._transport is not None
    accepted = client._transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 300


async def test_what_was_promised_is_answered_before_the_end(store: Store, server: Server) -> None:
    client = await server.clients.connect()
    await client.send(Publish("up/a", qos=1, packet_id=7))
    await until(lambda: server.rows.taken == 1)
    await server.listener.close()
    assert (await client.until_closed())[0] == PubAck(7)


async def test_wills_are_carried_out_at_a_stop(store: Store, server: Server) -> None:
    await server.clients.connect(will=Will("up/will", b"gone", qos=1))
    await server.listener.close()
    assert server.rows.taken == 1
    await store.settle()
    assert not store.writer.pending_rows


async def test_a_client_that_reads_nothing_does_not_hold_up_the_stop(
    held: Server, held_writer: HeldWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "CLOSE_TIMEOUT", 0.1)
    client = await held.clients.connect()
    await client.send(Publish("up/a", qos=1, packet_id=7))  # never committed, so never answered
    await until(lambda: held.rows.taken == 1)
    await held.listener.close()
    assert not held.broker.connections
    assert PubAck(7) not in await client.until_closed()


async def test_a_socket_that_never_became_a_connection_does_not_hold_up_the_stop(
    server: Server,
) -> None:
    connections = server.listener.connections
    connections.accept()  # as asyncio does for one that it drops, since its server closes meanwhile
    assert len(connections.clients) == 1
    await server.listener.close()
    assert not connections.clients


async def test_closing_what_never_listened(held: Server) -> None:
    await Listener(ListenerSettings(HOST, 0), Anonymous(), held.turn).close()


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_this_process_is_found(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listening:
        port = listening.getsockname()[1]
        name = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
        assert holder_of(port) == f"{name} (process {os.getpid()})"
    assert holder_of(port) == ""


def test_a_connection_from_the_port_is_no_listener() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        assert holder_of(client.getsockname()[1]) == ""


def test_what_cannot_be_read_names_nobody(tmp_path: Path) -> None:
    assert holder_of(1883, tmp_path) == ""
    (tmp_path / "net").mkdir()
    row = "  0: 0100007F:075B 00000000:0000 0A 0:0 0:0 0 0 0 77 1"
    (tmp_path / "net/tcp").write_text(f"head\n{row}\n")
    (tmp_path / "12/fd").mkdir(parents=True)
    (tmp_path / "12/fd/3").symlink_to("socket:[77]")
    assert holder_of(1883, tmp_path) == ""  # it has ended: it has no name
    (tmp_path / "12/comm").write_text("mosquitto\n")
    assert holder_of(1883, tmp_path) == "mosquitto (process 12)"
    assert holder_of(1884, tmp_path) == ""
