"""Clients behind a proxy that names their addresses (the PROXY protocol, versions 1 and 2)."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.connecting.connection_info import Anonymous
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Connect, PubAck, Publish
from gateway.server.listening.listener import Listener
from gateway.server.proxied import LONGEST_1, SIGNATURE, HeaderError, ProxiedConnection, parse
from gateway.server.tls.context import server_context
from gateway.settings.listener import ListenerSettings
from tests.support.disk.storage import until
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.server import HOST, Server
from tests.support.raw_client import RawClient
from tests.support.websockets import frame, request

LINE = b"PROXY TCP4 203.0.113.7 192.0.2.1 40000 1883\r\n"
BINARY, CONNECT = 2, encode(Connect("c"), MQTT_5)
LINE_6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 40000 1883\r\n"


def _header(command: int, family: int, addresses: bytes, more: bytes = b"") -> bytes:
    size = len(addresses) + len(more)
    return SIGNATURE + bytes((0x20 | command, family)) + size.to_bytes(2, "big") + addresses + more


V4 = socket.inet_aton("203.0.113.7") + socket.inet_aton("192.0.2.1") + b"\x9c\x40\x07\x5b"
V6 = socket.inet_pton(socket.AF_INET6, "2001:db8::7") + bytes(16) + b"\x9c\x40\x07\x5b"
HEADERS = [
    (LINE, ("203.0.113.7", 40_000)),
    (LINE_6, ("2001:db8::7", 40_000)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ff::1 ff::2 1 2\r\n", None),
    (_header(1, 0x11, V4), ("203.0.113.7", 40_000)),
    (_header(1, 0x11, V4, b"\x03\x00\x04abcd"), ("203.0.113.7", 40_000)),
    (_header(1, 0x21, V6), ("2001:db8::7", 40_000)),
    (_header(0, 0x00, b""), None),
    (_header(1, 0x31, bytes(216)), None),
]


@pytest.mark.parametrize(("header", "address"), HEADERS)
def test_headers_are_read_whatever_their_pieces(header: bytes, address: Any) -> None:
    for end in range(1, len(header)):
        assert parse(header[:end]) is None, header[:end]
    assert parse(header) == (len(header), address)
    assert parse(header + b"\x10\x0c") == (len(header), address)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x10\x0d\x00\x04MQTT", "no PROXY header in front of MQTT"),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", "a PROXY line is"),
        (b"PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n", "a PROXY line is"),
        (b"PROXY TCP4 barn.lan 5.6.7.8 1 2\r\n", "an address that is none: barn.lan"),
        (b"PROXY TCP4 ::1 5.6.7.8 1 2\r\n", "an address that is none: ::1"),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 70000 2\r\n", "port 70000"),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 x 2\r\n", "an address that is none"),
        (b"PROXY " + b"x" * LONGEST_1, "a PROXY line of more than 107 bytes"),
        (SIGNATURE + b"\x11\x11\x00\x0c", "version and command 0x11"),
        (SIGNATURE + b"\x22\x11\x00\x0c", "version and command 0x22"),
        (SIGNATURE + b"\x21\x11\xff\xff", "at most 4,096 are read"),
        (_header(1, 0x11, bytes(4)), "too few for its addresses"),
    ],
)
def test_what_is_no_header_is_told(data: bytes, said: str) -> None:
    with pytest.raises(HeaderError, match=said):
        parse(data)


@asynccontextmanager
async def _listener(
    held: Server, networks: str = "127.0.0.0/8", tls: ssl.SSLContext | None = None, **keys: Any
) -> AsyncIterator[Listener]:
    keys |= {"proxy_protocol": True, "proxy_protocol_from": (ip_network(networks),)}
    listener = Listener(ListenerSettings(HOST, 0, **keys), Anonymous(), held.turn, tls=tls)
    await listener.bind()
    await listener.serve()
    yield listener
    await listener.close()


async def _connect(port: int, header: bytes, tls: ssl.SSLContext | None = None) -> RawClient:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(header)
    if tls is not None:
        await writer.start_tls(tls, server_hostname="localhost")
    return RawClient(reader, writer, MQTT_5)


@pytest.mark.parametrize(("header", "address"), HEADERS)
async def test_the_client_has_the_address_that_the_proxy_names(
    held: Server, header: bytes, address: Any
) -> None:
    async with _listener(held) as listener:
        client = await _connect(listener.port, header)
        await client.connect_as("c")
        (connected,) = held.broker.clients.values()
        host = HOST if address is None else address[0]
        assert host in connected.peer
        assert connected.info.local == (address is None)
        await client.close()


async def test_a_header_comes_before_tls(held: Server, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("localhost")
    settings = ListenerSettings(HOST, 0, tls_certificate=pair.certificate, tls_key=pair.key)
    tls = ssl.create_default_context(cafile=authority.ca_file)
    async with _listener(held, tls=server_context(settings, "file", 0)) as listener:
        client = await _connect(listener.port, LINE, tls)
        await client.connect_as("c")
        (connected,) = held.broker.clients.values()
        assert connected.peer == "203.0.113.7:40000"
        await client.close()


@pytest.mark.parametrize("secure", [False, True])
async def test_a_header_comes_before_a_websocket(
    held: Server, tmp_path: Path, secure: bool
) -> None:
    keys: dict[str, Any] = {"websocket": True}
    server_tls = client_tls = None
    if secure:
        authority = Authority(tmp_path)
        pair = authority.issue("localhost")
        keys |= {"tls_certificate": pair.certificate, "tls_key": pair.key}
        server_tls = server_context(ListenerSettings(HOST, 0, **keys), "file", 0)
        client_tls = ssl.create_default_context(cafile=authority.ca_file)
    async with _listener(held, tls=server_tls, **keys) as listener:
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(LINE_6 if secure else LINE + request())
        if client_tls is not None:
            await writer.start_tls(client_tls, server_hostname="localhost")
            writer.write(request())
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(frame(BINARY, CONNECT))
        connack = await reader.readexactly(4)
        assert connack[2] >> 4 == 2
        (connected,) = held.broker.clients.values()
        assert connected.peer == ("[2001:db8::7]:40000" if secure else "203.0.113.7:40000")
        writer.close()
        await until(lambda: not listener.connections.clients)


async def test_a_websocket_without_a_header_is_closed(
    held: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with _listener(held, websocket=True) as listener:
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(request())
        assert await reader.read() == b""
        writer.close()
        await until(lambda: not listener.connections.clients)
    assert "no PROXY header in front of MQTT" in caplog.text


async def test_a_stranger_is_closed_whatever_it_says(
    held: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with _listener(held, "192.0.2.0/24") as listener:
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(LINE)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()
        await until(lambda: not listener.connections.clients)
    assert "its address is not in proxy_protocol_from" in caplog.text


async def test_a_connection_that_is_gone_already_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server((HOST, free_port())) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # with RST: the socket has no peer any more
    held: Any = ProxiedConnection(asyncio.Protocol(), (ip_network("127.0.0.0/8"),), 10)
    transport, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: held, accepted)
    assert transport.is_closing()
    assert "is closed: it is gone already" in caplog.text


async def test_a_client_without_a_header_is_closed_and_told_in_the_log(
    held: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with _listener(held) as listener:
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01c")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()
        await until(lambda: not listener.connections.clients)
    assert "no PROXY header in front of MQTT" in caplog.text


async def test_half_a_header_is_not_waited_for_without_end(
    held: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with _listener(held) as listener:
        listener.stack.connect_timeout = 1
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(LINE[:20])
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()
        again = await _connect(listener.port, LINE[:20])
        await again.close()  # one that goes before its header is whole
        await until(lambda: not listener.connections.clients)
    assert "no PROXY header within 1 s" in caplog.text


async def test_large_messages_and_slow_readers_pass(held: Server) -> None:
    async with _listener(held) as listener:
        client = await _connect(listener.port, LINE)
        await client.connect_as("c")
        await client.subscribe("a")
        for number in range(1, 21):
            await client.send(Publish("a", bytes(1_000_000), 1, packet_id=number))
        packets = [await client.receive() for _ in range(40)]
        assert sum(isinstance(each, PubAck) for each in packets) == 20
        await client.close()
        await until(lambda: not listener.connections.clients)
