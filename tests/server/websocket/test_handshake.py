"""How a WebSocket connection begins, or does not."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Connect
from gateway.settings.broker import BrokerSettings
from tests.support.disk.storage import until
from tests.support.places import open_place, open_websocket
from tests.support.processes.certificates import Authority, Pair
from tests.support.websockets import (
    BINARY,
    CLOSE,
    KEY,
    PING,
    PING_REQUEST,
    PING_RESPONSE,
    Sockets,
    frame,
    request,
)

CONNECT = encode(Connect("c"), MQTT_5)


@pytest.mark.uncovered
@pytest.mark.parametrize("path", ["/mqtt", "/", "/mqtt?client=1", "/mqtt/", "/ws"])
@pytest.mark.parametrize("offered", ["mqtt", "chat, mqtt", "mqttv3.1"])
async def test_a_handshake_is_answered(sockets: Sockets, path: str, offered: str) -> None:
    socket = await sockets.open()
    await socket.send(request(path, Sec_WebSocket_Protocol=offered))
    status, fields = await socket.response()
    assert status == 101
    chosen = offered.rpartition(" ")[2]
    assert f"Sec-WebSocket-Protocol: {chosen}\r\n".encode() in fields  # [MQTT-6.0.0-4]
    assert b"Sec-WebSocket-Extensions" not in fields
    await socket.send(frame(BINARY, CONNECT))
    _, connack = await socket.frame()
    assert connack[0] == 0x20


async def test_other_fields_may_hold_what_they_like(sockets: Sockets) -> None:
    socket = await sockets.open()
    await socket.send(request()[:-2] + b"Cookie: k\xc3\xa4se=\xff\r\n\r\n")
    status, _ = await socket.response()
    assert status == 101


async def test_a_handshake_a_byte_at_a_time(sockets: Sockets) -> None:
    socket = await sockets.open()
    for byte in request() + frame(BINARY, CONNECT):
        await socket.send(bytes([byte]))
        await asyncio.sleep(0)
    status, _ = await socket.response()
    assert status == 101


BAD_REQUESTS = [
    ("another path", request("/metrics"), 404),
    ("no upgrade", request(Upgrade=None, Connection="close"), 426),
    ("another upgrade", request(Upgrade="h2c"), 426),
    ("no subprotocol", request(Sec_WebSocket_Protocol=None), 400),  # [MQTT-6.0.0-3]
    ("another subprotocol", request(Sec_WebSocket_Protocol="chat"), 400),
    ("no key", request(Sec_WebSocket_Key=None), 400),
    ("a bad key", request(Sec_WebSocket_Key="AAAA"), 400),
    ("an old version", request(Sec_WebSocket_Version="8"), 400),
    ("another method", request(method="POST"), 400),
    ("a body", request(Content_Length="5") + b"hello", 400),
    ("chunks", request(Transfer_Encoding="chunked"), 400),
    ("an old HTTP", request().replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    ("an upgrade not in ASCII", request().replace(b": websocket", b": \x80websocket"), 400),
    ("a key not in ASCII", request().replace(KEY.encode(), b"\x80" + KEY[1:].encode()), 400),
    ("no HTTP", b"hello\r\n\r\n", 400),
    ("MQTT", CONNECT + b"\r\n", 400),
    ("TLS", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\n", 400),
    ("a line without end", b"GET /" + b"a" * 9_000, 400),
    ("many fields", request(**{f"X-{n}": "a" for n in range(130)}), 400),
    ("long fields", request(**{f"X-{n}": "a" * 4_000 for n in range(5)}), 431),
    ("fields without end", request()[:-2] + (b"X: " + b"a" * 4_000 + b"\r\n") * 5, 431),
    ("a frame too early", request() + frame(BINARY, CONNECT), 400),
    ("a ping too early", request() + frame(PING, b"x"), 400),
    ("a close too early", request() + frame(CLOSE), 400),
    ("garbage too early", request() + b"\xff" * 10, 400),
]


@pytest.mark.parametrize(
    ("data", "status"),
    [(data, status) for _, data, status in BAD_REQUESTS],
    ids=[name for name, _, _ in BAD_REQUESTS],
)
async def test_a_bad_handshake_is_answered_and_disturbs_nobody(
    sockets: Sockets, caplog: pytest.LogCaptureFixture, data: bytes, status: int
) -> None:
    healthy = await sockets.connect("healthy")
    caplog.set_level(logging.INFO)
    caplog.clear()
    socket = await sockets.open()
    await socket.send(data)
    answer, _ = await socket.response()
    assert answer == status
    rest = await socket.rest()
    assert b"HTTP/1.1" not in rest, "one answer"
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert str(status) in record.message
    assert sockets.counters.count("tidegate/connections/websocket_refused") == 1
    await until(lambda: sockets.counters.count("tidegate/connections/open") == 1)
    await healthy.send(frame(BINARY, PING_REQUEST))
    assert await healthy.frame() == (0x80 | BINARY, PING_RESPONSE)


@pytest.mark.parametrize("slowly", [False, True])
async def test_a_handshake_that_is_not_finished_ends_with_connect_timeout(
    tmp_path: Path, authority: Authority, server_pair: Pair, *, slowly: bool
) -> None:
    place = await open_place(
        "websocket", tmp_path, authority, server_pair, settings=BrokerSettings(connect_timeout=1)
    )
    sockets = Sockets(place)
    socket = await sockets.open()
    ended = asyncio.create_task(socket.rest())
    for byte in request():
        if ended.done():
            break
        if slowly:
            socket.writer.write(bytes([byte]))
        await asyncio.sleep(0.05)
    assert await ended == b""
    assert sockets.counters.count("tidegate/connections/connect_timeouts") == 1
    await sockets.close()


async def test_a_peer_that_says_nothing_and_goes_is_no_news(
    sockets: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    socket = await sockets.open()
    socket.writer.close()
    await until(lambda: sockets.counters.values.get("tidegate/connections/open") == 0)
    assert not caplog.records


PANEL = ("https://panel.example",)


@pytest.mark.uncovered
@pytest.mark.parametrize("named", [None, PANEL, ("*",)])
@pytest.mark.parametrize("origin", [None, "own", *PANEL, "https://evil.example", "null"])
async def test_pages_of_other_origins_are_refused_unless_they_are_named(
    tmp_path: Path,
    authority: Authority,
    server_pair: Pair,
    caplog: pytest.LogCaptureFixture,
    named: tuple[str, ...] | None,
    origin: str | None,
) -> None:
    caplog.set_level(logging.INFO)
    place = await open_place(
        "websocket",
        tmp_path,
        authority,
        server_pair,
        change=lambda listener: replace(listener, websocket_origins=named),
    )
    here = f"localhost:{place.server.port}"
    page = f"http://{here}" if origin == "own" else origin
    if named == ("*",) or origin in (None, "own", *(named or ())):
        await (await open_websocket(f"ws://{here}/mqtt", origin=page)).close()
    else:
        with pytest.raises(InvalidStatus, match="403"):
            await open_websocket(f"ws://{here}/mqtt", origin=page)
        assert place.server.counters.count("tidegate/connections/origins_refused") == 1
        assert f"403 Forbidden for a page of {page!r}" in caplog.text
    await place.close()


async def test_a_page_whose_name_leads_here_is_refused(
    sockets: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    """DNS rebinding: to the browser the page and the listener have one address."""
    caplog.set_level(logging.INFO)
    socket = await sockets.open()
    await socket.send(request(Host="attacker.example:1", Origin="http://attacker.example:1"))
    assert (await socket.response())[0] == 403
    socket = await sockets.open()
    await socket.send(request(Origin="http://" + "a" * 1_000))
    assert (await socket.response())[0] == 403
    assert max(len(record.getMessage()) for record in caplog.records) < 250
    assert sockets.counters.count("tidegate/connections/origins_refused") == 2


async def test_paths_and_clients_without_a_subprotocol_can_be_named(
    tmp_path: Path, authority: Authority, server_pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    place = await open_place(
        "websocket",
        tmp_path,
        authority,
        server_pair,
        change=lambda listener: replace(
            listener, websocket_paths=("/barn",), websocket_without_subprotocol=True
        ),
    )
    sockets = Sockets(place)
    for path, offered, status in (
        ("/barn", None, 101),
        ("/barn", "mqtt", 101),
        ("/barn", "chat", 400),
        ("/mqtt", "mqtt", 404),
    ):
        socket = await sockets.open()
        await socket.send(request(path, Sec_WebSocket_Protocol=offered))
        answer, fields = await socket.response()
        assert answer == status
        assert (b"Sec-WebSocket-Protocol: mqtt" in fields) is (offered == "mqtt" and status == 101)
        if status == 101:
            await socket.send(frame(BINARY, CONNECT))
            _, connack = await socket.frame()
            assert connack[0] == 0x20
    assert "404 Not Found for '/mqtt', which websocket_paths does not name" in caplog.text
    await sockets.close()


async def test_the_key_that_allows_no_subprotocol_is_told(
    sockets: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    socket = await sockets.open()
    await socket.send(request(Sec_WebSocket_Protocol=None))
    assert (await socket.response())[0] == 400
    assert "which websocket_without_subprotocol would allow" in caplog.text
