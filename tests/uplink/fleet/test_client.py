"""One connection to the fleet's broker."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import gateway.uplink.fleet.client as identifiers_module
from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Packet,
    PingReq,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.uplink.errors import LinkError
from gateway.uplink.fleet.client import FleetClient, KeepAlive, OnMessage
from gateway.uplink.fleet.message import fleet_message
from gateway.uplink.fleet.stream import open_socket
from tests.support.disk.storage import until
from tests.support.fleet.uplinks import uplink_settings
from tests.support.frames import next_frame


def test_silence_in_either_direction_asks_for_a_ping() -> None:
    for direction in ("sent", "received"):
        keep_alive = KeepAlive(30, 0.0)
        setattr(keep_alive, direction, True)
        keep_alive.note(20.0)
        assert not keep_alive.due(29.9)
        assert keep_alive.due(30.0)
        assert not keep_alive.due(31.0)  # one is under way


def test_signs_of_life_both_ways_put_the_ping_off() -> None:
    keep_alive = KeepAlive(30, 0.0)
    keep_alive.sent = True
    keep_alive.note(20.0)
    keep_alive.received = True
    keep_alive.note(21.0)
    keep_alive.note(22.0)  # nothing since
    assert not keep_alive.due(49.9)
    assert keep_alive.due(50.0)


def test_without_any_answer_it_is_over() -> None:
    keep_alive = KeepAlive(30, 0.0)
    assert not keep_alive.over(1_000.0)
    assert keep_alive.due(30.0)
    assert not keep_alive.over(59.9)
    assert keep_alive.over(60.0)
    keep_alive.received = True
    keep_alive.note(60.0)
    assert not keep_alive.over(60.0)


def test_0_asks_for_none() -> None:
    assert not KeepAlive(0, 0.0).due(1e6)


MOST = 40_000
"""Bytes of the largest packet that the client takes."""


def _into(taken: list[bytes]) -> OnMessage:
    """Return a handler that acknowledges at once."""

    def receive(publish: Publish, acknowledge: Callable[[], None]) -> None:
        taken.append(publish.payload)
        acknowledge()

    return receive


class Server:
    """Keeps what comes; says what it is told."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.ended = False
        self._writer: asyncio.StreamWriter | None = None

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def say(self, *packets: Packet) -> None:
        self.say_bytes(b"".join(encode(packet, MQTT_5) for packet in packets))

    def say_bytes(self, data: bytes) -> None:
        assert self._writer is not None, "nobody has connected"
        self._writer.write(data)

    @property
    def publishes(self) -> list[Publish]:
        return [packet for packet in self.packets if isinstance(packet, Publish)]

    async def stop(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        framer = Framer(1 << 28)
        while data := await reader.read(65_536):
            framer.feed(data)
            while (frame := next_frame(framer)) is not None:
                version = 0 if not self.packets else MQTT_5
                self.packets.append(decode(*frame, version))
        self.ended = True


class Wired:
    """A client that has sent its CONNECT to a server."""

    def __init__(self, server: Server, client: FleetClient) -> None:
        self.server = server
        self.client = client
        self.answers: list[tuple[int, int]] = []
        self.error = ""

    def serve(self) -> bool:
        """Do what the uplink does whenever it is woken; keep what it would raise."""
        try:
            self.client.service()
        except LinkError as error:
            self.error = str(error)
        return bool(self.error)

    async def connected(self, **properties: Any) -> None:
        self.server.say(ConnAck(properties=Properties(**properties)))
        await self.until(lambda: self.client.limits is not None)

    async def until(self, condition: Any) -> None:
        await until(lambda: self.serve() or condition())
        assert condition(), self.error


@pytest.fixture
async def wired() -> AsyncIterator[Wired]:
    server = Server()
    port = await server.start()
    answers: list[tuple[int, int]] = []
    client = FleetClient(
        uplink_settings(port, maximum_packet_size=MOST),
        lambda: None,
        lambda mid, code: answers.append((mid, code)),
    )
    client.connect(None)
    found = Wired(server, client)
    found.answers = answers
    await found.until(lambda: len(server.packets) == 1)
    yield found
    await client.close()
    await until(lambda: server.ended)
    await server.stop()


MESSAGE = fleet_message("a", b"1", version=MQTT_5)


async def test_what_is_published_leaves_with_the_flush_and_in_order(wired: Wired) -> None:
    await wired.connected()
    mids = [wired.client.publish(MESSAGE) for _ in range(3)]
    wired.client.publish_again(9, MESSAGE)
    await asyncio.sleep(0)
    assert len(wired.server.packets) == 1
    wired.client.flush()
    await until(lambda: len(wired.server.packets) == 5)
    assert isinstance(wired.server.packets[0], Connect)
    sent = [(each.packet_id, each.dup) for each in wired.server.publishes]
    assert sent == [*((mid, False) for mid in mids), (9, True)]
    wired.server.say(PubAck(1), PubAck(2, ReasonCode.QUOTA_EXCEEDED))
    wired.server.say(PubAck(3, ReasonCode.NO_MATCHING_SUBSCRIBERS))
    await wired.until(lambda: wired.answers == [(1, 0), (2, 0x97), (3, 0x10)])


async def test_no_identifier_is_given_twice_before_its_puback(
    wired: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identifiers_module, "LAST_PACKET_IDENTIFIER", 4)
    await wired.connected()
    client = wired.client
    client.packet_identifiers.last = 2
    client.publish_again(4, MESSAGE)
    assert [client.publish(MESSAGE) for _ in range(2)] == [3, 1]
    wired.server.say(PubAck(3))
    await wired.until(lambda: wired.answers)
    assert [client.publish(MESSAGE) for _ in range(2)] == [2, 3]
    assert client.packet_identifiers.last == 3


async def test_messages_of_the_server_are_taken_and_acknowledged(wired: Wired) -> None:
    taken: list[bytes] = []
    wired.client.listen(_into(taken))
    await wired.connected()
    wired.client.subscribe(SubscriptionRequest("ask", 1))
    wired.client.flush()
    await until(lambda: isinstance(wired.server.packets[-1], Subscribe))
    wired.server.say(
        SubAck(1, [ReasonCode.GRANTED_QOS_1]),
        Publish("ask", b"old", 1, retain=True, packet_id=7),
        Publish("ask", b"new", 1, packet_id=8),
        Publish("ask", b"light"),
    )
    await wired.until(lambda: len(wired.server.packets) == 4)
    assert taken == [b"old", b"new", b"light"]
    assert wired.server.packets[2:] == [PubAck(7), PubAck(8)]


async def test_a_message_of_qos_2_is_acknowledged_as_one(wired: Wired) -> None:
    """The session may have subscriptions of QoS 2: of a bridge that this gateway replaced."""
    taken: list[bytes] = []
    wired.client.listen(_into(taken))
    await wired.connected()
    wired.server.say(
        PubRel(6),  # received on an earlier connection
        Publish("ask", b"twice", 2, packet_id=7),
        Publish("large", bytes(MOST), 2, packet_id=8),
        PubRel(7),
    )
    await wired.until(lambda: len(wired.server.packets) == 5)
    assert taken == [b"twice"]
    assert wired.server.packets[1:] == [
        PubComp(6),
        PubRec(7),
        PubRec(8, ReasonCode.QUOTA_EXCEEDED),
        PubComp(7),
    ]
    assert not wired.error


@pytest.mark.parametrize("piece", [1_000, 1 << 20])
async def test_a_message_that_is_too_large_is_left_out_and_acknowledged(
    wired: Wired, piece: int
) -> None:
    taken: list[bytes] = []
    left_out: list[tuple[str, str]] = []
    wired.client.listen(_into(taken))
    wired.client.on_skipped = lambda topic, why: left_out.append((topic, why))
    await wired.connected()
    properties = Properties(user_properties=(("", ""),) * 4_097)
    packets = [
        Publish("a", b"1", 1, packet_id=6),
        Publish("ü/large", bytes(50_000), 1, retain=True, packet_id=7),
        Publish("many", b"2", 1, packet_id=8, properties=properties),
        Publish("light", bytes(MOST)),
        Publish("b", b"3", 1, packet_id=9),
    ]
    data = b"".join(encode(packet, MQTT_5) for packet in packets)
    for start in range(0, len(data), piece):
        wired.server.say_bytes(data[start : start + piece])
        await asyncio.sleep(0)
    await wired.until(lambda: len(wired.server.packets) == 5)
    assert taken == [b"1", b"3"]
    assert wired.server.packets[1:] == [
        PubAck(6),
        PubAck(7, ReasonCode.QUOTA_EXCEEDED),
        PubAck(8, ReasonCode.QUOTA_EXCEEDED),
        PubAck(9),
    ]
    assert left_out == [
        ("ü/large", f"it has 50017 bytes; at most {MOST}"),
        ("many", "a packet with more than 4096 properties"),
        ("light", f"it has {MOST + 12} bytes; at most {MOST}"),
    ]
    assert not wired.error


async def test_a_refused_subscription_is_logged(
    wired: Wired, caplog: pytest.LogCaptureFixture
) -> None:
    await wired.connected()
    wired.client.subscribe(SubscriptionRequest("ask", 1))
    wired.server.say(SubAck(1, [ReasonCode.NOT_AUTHORIZED]))
    await wired.until(lambda: "refused the subscription: Not authorized (0x87)" in caplog.text)
    assert not wired.error


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x40\x01\x00", "sent what is no MQTT"),
        (b"\x00\x00", "sent what is no MQTT"),
        (b"\x90\xff\xff\xff\x7f", f"at most {MOST}"),
        (b"\x30\xc0\xb8\x02\xff\xff" + bytes(40_000), "no MQTT: topic name"),
        (b"\xe0\x00", "ended the connection: Success (0x00)"),
    ],
    ids=["short", "type", "large", "no topic", "disconnect"],
)
async def test_what_ends_a_connection_is_said(wired: Wired, data: bytes, error: str) -> None:
    await wired.connected()
    wired.server.say_bytes(data)
    await until(wired.serve)
    assert error in wired.error


async def test_a_mistake_in_what_is_done_with_a_packet_ends_the_connection(
    wired: Wired, caplog: pytest.LogCaptureFixture
) -> None:
    await wired.connected()

    def broken(_publish: Publish, _acknowledge: Callable[[], None]) -> None:
        raise RuntimeError("a bug")

    wired.client.listen(broken)
    wired.server.say(Publish("ask", b"1", 1, packet_id=7))
    await until(wired.serve)
    assert "RuntimeError: a bug" in wired.error
    assert "uplink: unexpected error" in caplog.text


class Hands:
    """A clock that a test moves on."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now


async def test_the_servers_keep_alive_holds_and_silence_ends_the_connection(
    wired: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wired.connected(server_keep_alive=7)
    clock = Hands(asyncio.get_running_loop().time())
    monkeypatch.setattr(wired.client, "_loop", clock)
    clock.now += 6.0
    assert not wired.serve()
    clock.now += 2.0
    assert not wired.serve()
    await until(lambda: len(wired.server.packets) > 1)
    assert wired.server.packets[1:] == [PingReq()]
    clock.now += 8.0
    assert wired.serve()
    assert "no answer to PINGREQ" in wired.error


@pytest.mark.parametrize("closed_before", [True, False])
def test_a_socket_that_opens_while_the_loop_closes_is_closed(closed_before: bool) -> None:
    loop = asyncio.new_event_loop()
    others = set(threading.enumerate())
    calls: list[socket.socket | None] = []

    def start(port: int) -> None:
        loop.stop()  # after this step
        open_socket("127.0.0.1", port, lambda sock, _: calls.append(sock))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        loop.call_soon(start, listening.getsockname()[1])
        loop.run_forever()
        if closed_before:
            loop.close()
        for thread in set(threading.enumerate()) - others:
            thread.join()
        loop.close()
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(1) == b""
    assert not calls
