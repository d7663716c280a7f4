"""MQTT over WebSocket, byte by byte: handshakes, frames, and what is wrong with them."""

import asyncio
import logging
import struct
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import MQTT_5, Packet, PingReq, Publish, Subscribe, SubscriptionRequest
from gateway.server import transport as transport_module
from gateway.server.transport import ClientTransport
from gateway.server.websocket.connection import READ_BYTES, FrameTransport, WebSocketConnection
from tests.support.disk.storage import until
from tests.support.frames import next_frame
from tests.support.websockets import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PING_REQUEST,
    PING_RESPONSE,
    PONG,
    TEXT,
    Sockets,
    frame,
)

# --- frames ---------------------------------------------------------------------------------


async def test_a_frame_may_hold_several_packets_and_a_packet_several_frames(
    sockets: Sockets,
) -> None:  # [MQTT-6.0.0-2]
    socket = await sockets.connect()
    await socket.send(frame(BINARY, PING_REQUEST * 3))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE * 3)
    await socket.send(frame(BINARY, PING_REQUEST[:1]), frame(BINARY, PING_REQUEST[1:]))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
    await socket.send(
        frame(BINARY, PING_REQUEST[:1], last=False),
        frame(PING, b"in between"),
        frame(CONTINUATION, b"", last=False),
        frame(CONTINUATION, PING_REQUEST[1:]),
    )
    assert await socket.frame() == (0x80 | PONG, b"in between")
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
    await socket.send(frame(BINARY), frame(PONG, b"unasked"), frame(BINARY, PING_REQUEST))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)


async def test_the_output_of_a_turn_is_one_frame(
    sockets: Sockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "HANDLING", 60.0)  # the turn ends early for nobody else
    socket = await sockets.connect()
    subscribe = Subscribe(1, [SubscriptionRequest("a")])
    packets: list[Packet] = [subscribe, *[Publish("a", b"x" * 100)] * 100, PingReq()]
    await socket.send(frame(BINARY, b"".join(encode(packet, MQTT_5) for packet in packets)))
    _, data = await socket.frame()
    framer = Framer(0xFFFFFFFF)
    framer.feed(data)
    count = 0
    while next_frame(framer) is not None:
        count += 1
    assert count == 102


@pytest.mark.uncovered
async def test_little_is_read_at_a_time(sockets: Sockets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have their turn between thousands of frames."""
    reads: list[int] = []
    receive = WebSocketConnection.data_received

    def count(connection: WebSocketConnection, data: bytes) -> None:
        reads.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(WebSocketConnection, "data_received", count)
    socket = await sockets.connect()
    frames = frame(BINARY) * 20_000 + frame(BINARY, PING_REQUEST)
    await socket.send(frames)
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
    assert sum(reads) > len(frames)
    assert max(reads) <= READ_BYTES


@pytest.mark.uncovered
async def test_a_message_without_end_is_a_stream(sockets: Sockets) -> None:
    """One WebSocket message in ever new fragments: nothing piles up."""
    socket = await sockets.connect()
    await socket.send(frame(BINARY, PING_REQUEST, last=False))
    for _ in range(200):
        assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
        await socket.send(frame(CONTINUATION, PING_REQUEST, last=False))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)


BAD_FRAMES = [
    ("text", frame(TEXT, b"hello"), 1003),  # [MQTT-6.0.0-1]
    ("text in fragments", frame(TEXT, b"hel", last=False), 1003),
    ("text behind MQTT", frame(BINARY, PING_REQUEST) + frame(TEXT, b"hello"), 1003),
    ("text before a close", frame(TEXT, b"hello") + frame(CLOSE), None),
    ("unmasked", frame(BINARY, PING_REQUEST, mask=None), 1002),
    ("reserved bit", bytes([0xC2]) + frame(BINARY, b"x")[1:], 1002),
    ("unknown opcode", frame(0x3, b"x"), 1002),
    ("continuation of nothing", frame(CONTINUATION, b"x"), 1002),
    ("new message in the middle", frame(BINARY, b"\xc0", last=False) + frame(BINARY, b"\0"), 1002),
    ("fragmented ping", frame(PING, b"x", last=False), 1002),
    ("long ping", frame(PING, b"x" * 126), 1002),
    ("close of one byte", frame(CLOSE, b"x"), 1002),
    ("close with bad UTF-8", frame(CLOSE, b"\x03\xe8\xff"), 1007),
    ("too large", frame(BINARY, bytes(4 * 1024 * 1024 + 1)), 1009),
    ("far too large", b"\x82\xff" + b"\xff" * 8 + b"\x01\x02\x03\x04", 1009),
]


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("data", "code"),
    [(data, code) for _, data, code in BAD_FRAMES],
    ids=[name for name, _, _ in BAD_FRAMES],
)
async def test_a_bad_frame_ends_its_connection_alone(
    sockets: Sockets, caplog: pytest.LogCaptureFixture, data: bytes, code: int | None
) -> None:
    healthy = await sockets.connect("healthy")
    caplog.set_level(logging.INFO)
    socket = await sockets.connect()
    caplog.clear()
    sending = asyncio.create_task(socket.send(data))
    try:
        while (received := await socket.frame())[0] != 0x80 | CLOSE:
            assert received == (0x80 | BINARY, PING_RESPONSE)
    except ConnectionError:
        assert len(data) > 65_536, "only one that still sends may miss the answer"
    else:
        assert received[1][:2] == (b"" if code is None else struct.pack("!H", code))
    await asyncio.gather(sending, return_exceptions=True)
    await socket.rest()
    messages = [record for record in caplog.records if record.levelno > logging.INFO]
    assert not messages
    assert sockets.counters.count("tidegate/connections/websocket_errors") == 1
    await until(lambda: sockets.counters.count("tidegate/connections/open") == 1)
    await healthy.send(frame(BINARY, PING_REQUEST))
    assert await healthy.frame() == (0x80 | BINARY, PING_RESPONSE)


# --- closing --------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\x03\xe8", b"\x03\xe9bye"])
async def test_a_close_is_answered(sockets: Sockets, data: bytes) -> None:
    socket = await sockets.connect()
    await socket.send(frame(CLOSE, data))
    assert await socket.frame() == (0x80 | CLOSE, data)
    assert await socket.rest() == b""
    await until(lambda: not sockets.place.server.broker.clients)


async def test_we_close_with_a_close_frame_and_wait_for_its_answer(sockets: Sockets) -> None:
    socket = await sockets.connect()
    await socket.send(frame(BINARY, b"\x00\x00"))
    first, disconnect = await socket.frame()
    assert (first, disconnect[0]) == (0x80 | BINARY, 0xE0)
    assert await socket.frame() == (0x80 | CLOSE, b"\x03\xe8")
    assert not sockets.place.server.broker.clients
    await socket.send(frame(BINARY, PING_REQUEST), frame(CLOSE, b"\x03\xe8"))
    assert await socket.rest() == b""


async def test_what_comes_behind_a_close_is_not_read(sockets: Sockets) -> None:
    socket = await sockets.connect()
    await socket.send(frame(CLOSE), frame(TEXT, b"x"), bytes(100))
    assert await socket.frame() == (0x80 | CLOSE, b"")
    assert await socket.rest() == b""
    assert sockets.counters.count("tidegate/connections/websocket_errors") == 0


@pytest.mark.uncovered
async def test_of_pings_whose_answers_nobody_reads_the_last_is_answered(
    sockets: Sockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await sockets.connect()
    (transport,) = sockets.place.server.listener.connections.clients
    below = transport._transport
    assert below is not None
    below.set_write_buffer_limits(high=1_024)
    flood = frame(PING, b"x" * 125) * 100
    written = 0
    while not transport._paused:
        await socket.send(flood)
        written += 100
        await asyncio.sleep(0)
        assert written < 1_000_000
    for _ in range(20):
        await socket.send(flood)
    await socket.send(frame(PING, b"last"))
    await until(lambda: answer_held_back(transport).endswith(b"last"))
    held = below.get_write_buffer_size()
    assert held < 300_000
    pongs = 0
    while (received := await socket.frame()) != (0x80 | PONG, b"last"):
        assert received == (0x80 | PONG, b"x" * 125)
        pongs += 1
    assert pongs <= written + 2_000


def answer_held_back(transport: ClientTransport) -> bytes:
    frames = cast("FrameTransport", transport._transport)._frames
    return frames._pong


# --- whatever the cuts ----------------------------------------------------------------------


@pytest.mark.uncovered
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
async def test_wherever_the_stream_is_cut_the_answers_are_the_same(
    sockets: Sockets, data: st.DataObject
) -> None:
    packets = PING_REQUEST * 20
    cuts = sorted(data.draw(st.lists(st.integers(0, len(packets)), max_size=8)))
    edges = [0, *cuts, len(packets)]
    frames = b"".join(frame(BINARY, packets[start:end]) for start, end in pairwise(edges))
    writes = sorted(data.draw(st.lists(st.integers(0, len(frames)), max_size=8)))
    edges = [0, *writes, len(frames)]
    socket = await sockets.connect()
    for start, end in pairwise(edges):
        await socket.send(frames[start:end])
        await asyncio.sleep(0)
    answers = b""
    while len(answers) < 40:
        first, part = await socket.frame()
        assert first == 0x80 | BINARY
        answers += part
    assert answers == PING_RESPONSE * 20
    socket.writer.close()
