"""Whatever strangers send to a listener of any kind: they alone feel it, and little is said."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect
from tests.support.disk.storage import until
from tests.support.places import Place, open_place
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.server import HOST

HANDSHAKE = (
    b"GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)

BEGINNINGS = [
    b"",
    encode(Connect("c"), MQTT_5),
    encode(Connect("c"), MQTT_3_1_1),
    HANDSHAKE,
    HANDSHAKE[:40],
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


@st.composite
def garbage(draw: st.DrawFn) -> bytes:
    """Bytes that begin well, with one of them changed now and then."""
    data = bytearray(draw(st.sampled_from(BEGINNINGS)) + draw(st.binary(max_size=200)))
    if data and draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@pytest.fixture(params=["tcp", "tls", "websocket", "wss"])
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[Place]:
    opened = await open_place(request.param, tmp_path, authority, server_pair)
    yield opened
    await opened.close()


@pytest.mark.uncovered
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=garbage(), halves=st.booleans())
@example(data=HANDSHAKE + b"\x82\x85\0\0\0\0\xff\xff\xff\xff\x7f", halves=True)
async def test_garbage_disturbs_nobody(
    place: Place, caplog: pytest.LogCaptureFixture, *, data: bytes, halves: bool
) -> None:
    caplog.set_level(logging.DEBUG, "gateway")
    healthy = await place.connect("healthy")
    caplog.clear()
    reader, writer = await asyncio.open_connection(HOST, place.server.port)
    middle = len(data) // 2 if halves else len(data)
    writer.write(data[:middle])
    await asyncio.sleep(0)
    writer.write(data[middle:])
    writer.write_eof()
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):  # cut off before it had said all
            await reader.read()
    writer.close()
    assert not await healthy.waiting()
    await healthy.close()
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 0)
    said = [record for record in caplog.records if record.levelno > logging.INFO]
    # a client that was let in is one of ours: what it does wrong is worth a warning
    assert len(said) <= ("connected from" in caplog.text) + 1
    assert not [record for record in said if record.levelno > logging.WARNING]
    assert place.server.counters.count("tidegate/clients/errors") == 0


@pytest.mark.parametrize("connect", [b"", encode(Connect("c" * 30), MQTT_5)])
@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 1883\r\n",
        b"PROXY UNKNOWN\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\7\x5b",
    ],
    ids=["v1", "unknown", "v2"],
)
async def test_a_proxy_that_says_whom_it_speaks_for_is_told_as_one(
    tmp_path: Path,
    authority: Authority,
    server_pair: Pair,
    caplog: pytest.LogCaptureFixture,
    header: bytes,
    connect: bytes,
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    place = await open_place("tcp", tmp_path, authority, server_pair)
    reader, writer = await asyncio.open_connection(HOST, place.server.port)
    writer.write(header + connect)
    assert await reader.read() == b""
    writer.close()
    await place.close()
    assert "a PROXY protocol header before CONNECT; proxy_protocol is not supported" in caplog.text
