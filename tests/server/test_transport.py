import asyncio
import logging
import socket
import sqlite3
import struct
from pathlib import Path

import pytest

from gateway.broker import lone_way, sessions
from gateway.broker.handlers import HANDLERS
from gateway.mqtt import connection as connection_module
from gateway.mqtt.encode import encode
from gateway.mqtt.output import Pledge, Writing
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    PubRec,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message
from gateway.server import transport as transport_module
from gateway.server.gateway_loop import GatewayLoop
from gateway.session import session as session_module
from gateway.session import traffic
from gateway.session.delivery import Delivery
from gateway.storage.database import FILE_NAME
from tests.support.clocks import ManualClock
from tests.support.raw_client import RawClient
from tests.support.server import HOST, HeldWriter, Server, serve
from tests.support.storage import Store, until

SMALL = 4_096

READ_AT_ONCE = 256 * 1024
"""Bytes that the event loop reads from a socket at a time."""


@pytest.fixture
def narrow(held: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Give a server whose buffers, and the kernel's behind them, hold next to nothing."""
    for module in (connection_module, session_module, lone_way):
        monkeypatch.setattr(module, "MAXIMUM_UNSENT", SMALL)
    monkeypatch.setattr(transport_module, "HIGH_WATER", SMALL)
    assert held.listener._server is not None
    for sock in held.listener._server.sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    return held


def rows_on_disk(folder: Path) -> int:
    with sqlite3.connect(folder / FILE_NAME) as reader:
        (count,) = reader.execute("SELECT count(*) FROM meta WHERE name LIKE 'row %'").fetchone()
    reader.close()
    return int(count)


# --- durability -----------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
async def test_an_answer_leaves_after_the_commit(
    held: Server, held_writer: HeldWriter, qos: int
) -> None:
    client = await held.clients.connect("c")
    await client.send(PingReq(), Publish("up/a", qos=qos, packet_id=7), PingReq())
    assert await client.receive() == PingResp()
    await until(lambda: held.rows.taken == 1)
    other = await held.clients.connect("other")
    assert not await other.waiting()
    assert client.raw.endswith(b"\xd0\x00")
    held_writer.commit()
    assert await client.receive() == (PubAck(7) if qos == 1 else PubRec(7))
    assert await client.receive() == PingResp()


async def test_an_answer_leaves_when_everyone_it_is_owed_to_has_acknowledged(
    held: Server, held_writer: HeldWriter
) -> None:
    publisher = await held.clients.connect("c")
    connection = held.broker.clients["c"].connection
    pledge = Pledge(held_writer.batch)
    pledge.add()
    connection.send(PubAck(7), pledge.batch, pledge)
    connection.send(PingResp())
    other = await held.clients.connect("other")  # turns have passed
    assert not await other.waiting()
    assert connection.output.size == len(encode(PubAck(7), MQTT_5) + encode(PingResp(), MQTT_5))
    pledge.settle()
    assert await publisher.receive() == PubAck(7)
    assert await publisher.receive() == PingResp()
    assert held_writer.committed == 0


async def test_memory_durability_answers_at_once() -> None:
    server = await serve(HeldWriter(durable=False))
    client = await server.clients.connect("c")
    await client.send(Publish("up/a", qos=1, packet_id=7))
    assert await client.receive() == PubAck(7)
    await server.close()


async def test_an_answered_message_is_on_disk(server: Server, tmp_path: Path) -> None:
    client = await server.clients.connect("c")
    for number in range(1, 21):
        await client.send(Publish("up/a", qos=1, packet_id=number))
        assert await client.receive() == PubAck(number)
        assert rows_on_disk(tmp_path) == number


async def test_a_hundred_messages_share_a_commit(server: Server, store: Store) -> None:
    client = await server.clients.connect("c")
    before = store.counters.count("tidegate/storage/commits")
    await client.send(*(Publish("up/a", qos=1, packet_id=1 + number) for number in range(100)))
    answers = [await client.receive() for _ in range(100)]
    assert answers == [PubAck(1 + number) for number in range(100)]
    assert 1 <= store.counters.count("tidegate/storage/commits") - before <= 5
    assert store.counters.count("tidegate/storage/rows") == 100


async def test_many_clients_share_commits(server: Server, store: Store) -> None:
    async def publish_50(client: RawClient) -> None:
        for number in range(50):
            await client.send(Publish("up/a", qos=1, packet_id=1 + number))
            assert await client.receive() == PubAck(1 + number)

    clients = [await server.clients.connect(f"c{number}") for number in range(10)]
    await asyncio.gather(*(publish_50(client) for client in clients))
    assert store.counters.count("tidegate/storage/rows") == 500
    assert store.counters.count("tidegate/storage/commits") < 250


async def test_much_for_many_takes_several_turns(
    held: Server, held_writer: HeldWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await held.clients.connect("c")
    await client.subscribe("#")
    monkeypatch.setattr(traffic, "TURN_BYTES", 0)
    assert not await client.waiting()
    before = held_writer.turns
    messages = [Publish("ab"[number % 2], b"%d" % number) for number in range(20)]
    await client.send(*messages)
    assert [await client.receive() for _ in messages] == messages
    assert held_writer.turns - before >= 20


# --- slow readers ---------------------------------------------------------------------------


async def test_a_client_that_reads_nothing_does_not_stop_others(narrow: Server) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.say_connect("slow")
    await slow.subscribe("a", 1)
    fast = await narrow.clients.connect("fast")
    await fast.subscribe("a")
    publisher = await narrow.clients.connect("p")
    for number in range(90):
        await publisher.send(Publish("a", b"%02d" % number * 1_000))
        publish = await fast.receive()
        assert isinstance(publish, Publish)
        assert publish.payload.startswith(b"%02d" % number)
    assert len(narrow.broker.sessions["slow"].queue) > 40
    payloads = []
    for _ in range(90):
        publish = await slow.receive()
        assert isinstance(publish, Publish)
        payloads.append(publish.payload[:2])
    assert payloads == [b"%02d" % number for number in range(90)]


async def test_a_client_that_reads_no_answers_is_read_no_more(narrow: Server) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.say_connect("slow")
    pings = 160_000
    flood = asyncio.create_task(slow.send_bytes(encode(PingReq(), MQTT_5) * pings))
    connection = narrow.broker.clients["slow"].connection
    await until(lambda: connection.unread)
    other = await narrow.clients.connect("other")
    for _ in range(10):
        assert not await other.waiting()
    assert connection.packets_received < pings
    assert connection.output.size <= READ_AT_ONCE + SMALL
    assert await slow._reader.readexactly(2 * pings) == encode(PingResp(), MQTT_5) * pings
    await flood


@pytest.mark.parametrize("clock", [ManualClock()], ids=["manual"])
async def test_a_slow_subscriber_is_still_heard(narrow: Server, clock: ManualClock) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.say_connect("slow", keep_alive=1)
    await slow.subscribe("a")
    other = await narrow.clients.connect("other")
    await other.subscribe("b")
    for number in range(100):  # of different lengths: no runs
        await other.send(Publish("a", b"x" * (1_000 + number)))
    await until(lambda: narrow.broker.clients["slow"].connection.congested)
    for number in range(5):  # for longer than its keep alive allows it to be silent
        clock.step(1.4)
        await slow.send(Publish("b", b"%d" % number))
        assert await other.receive() == Publish("b", b"%d" % number)
        narrow.look_at_the_clock()
    assert narrow.broker.clients["slow"].connection.congested
    assert not narrow.broker.clients["slow"].closing
    clock.step(1.6)
    narrow.look_at_the_clock()
    assert narrow.broker.clients["slow"].closing


async def test_a_closed_client_that_reads_nothing_is_cut_off(
    narrow: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "CLOSE_TIMEOUT", 0.1)
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.say_connect("slow", will=Will("wills/slow", b"gone"))
    await slow.subscribe("a")
    watcher = await narrow.clients.connect("watcher")
    await watcher.subscribe("wills/+")
    publisher = await narrow.clients.connect("p")
    for number in range(100):  # of different lengths: no runs
        await publisher.send(Publish("a", b"x" * (1_000 + number)))
    await until(lambda: narrow.broker.clients["slow"].connection.congested)
    second = await narrow.clients.connect("slow")
    assert await watcher.receive() == Publish("wills/slow", b"gone")
    await until(lambda: len(narrow.broker.connections) == 3)
    assert not await second.waiting()


# --- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
async def test_an_abrupt_end_publishes_the_will(held: Server, how: str, version: int) -> None:
    watcher = await held.clients.connect("watcher")
    await watcher.subscribe("wills/+")
    client = await held.clients.connect("c", version, will=Will("wills/c", b"gone"))
    if how == "close":
        await client.close()
    else:
        client.reset()
    assert await watcher.receive() == Publish("wills/c", b"gone")
    assert list(held.broker.clients) == ["watcher"]


async def test_a_client_that_vanished_is_missed(held: Server) -> None:
    """No FIN, no reset, no packet: only its keep alive tells."""
    watcher = await held.clients.connect("watcher")
    await watcher.subscribe("wills/+")
    client = await held.clients.connect("c", keep_alive=1, will=Will("wills/c", b"gone"))
    assert await watcher.receive() == Publish("wills/c", b"gone")
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.KEEP_ALIVE_TIMEOUT


async def test_half_a_packet_and_then_the_end(held: Server) -> None:
    client = await held.clients.connect("c")
    await client.send_bytes(b"\x30\x7f\x00\x01")
    await client.close()
    await until(lambda: not held.broker.connections)


async def test_a_shut_down_sending_side_ends_the_connection(held: Server) -> None:
    client = await held.clients.connect("c")
    client._writer.write_eof()
    assert not await client.until_closed()
    await until(lambda: not held.broker.connections)


async def test_a_malformed_packet_ends_that_connection_alone(held: Server) -> None:
    other = await held.clients.connect("other")
    client = await held.clients.connect("c")
    await client.send_bytes(b"\x00\x00" + b"more" * 100_000)
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.MALFORMED_PACKET
    assert not await other.waiting()


async def test_a_mistake_of_ours_ends_that_connection_alone(
    held: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = await held.clients.connect("other")
    client = await held.clients.connect("c")

    def faulty(*_: object) -> None:
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patch:
        patch.setitem(HANDLERS, PingReq, faulty)
        await client.send(PingReq())
        (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.UNSPECIFIED_ERROR
    assert not await other.waiting()
    assert held.counters.count("tidegate/clients/errors") == 1
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None


async def test_a_mistake_while_writing_ends_that_connection_alone(held: Server) -> None:
    other = await held.clients.connect("other")
    client = await held.clients.connect("c")
    faulty = Message("a", b"1", 0)
    held.broker.sessions["c"].queue.append(Delivery(faulty, 0))
    faulty.payload = None  # type: ignore[assignment]  # the mistake: this cannot be encoded
    await asyncio.gather(client.send(PingReq()), other.send(PingReq()))
    assert await other.receive() == PingResp()
    assert await client.until_closed() == [PingResp()]
    assert held.counters.count("tidegate/clients/errors") == 1


class Wire:
    """Passes on what is written at once, and notes it; or makes a mistake."""

    def __init__(self, transport: Writing | None) -> None:
        self.transport = transport
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray, /) -> None:
        self.written.append(bytes(data))
        assert self.transport is not None
        self.transport.write(data)


async def a_way(server: Server) -> tuple[RawClient, RawClient, Wire]:
    """Return a subscriber, and a publisher that has a way to it, and what is written there."""
    subscriber = await server.clients.connect("subscriber")
    await subscriber.subscribe("a")
    publisher = await server.clients.connect("publisher")
    for payload in (b"1", b"2"):
        await publisher.send(Publish("a", payload))
        assert await subscriber.receive() == Publish("a", payload)
    assert server.broker.clients["publisher"].way is not None
    connection = server.broker.clients["subscriber"].connection
    connection.output.transport = wire = Wire(connection.output.transport)
    return subscriber, publisher, wire


@pytest.mark.parametrize("clock", [ManualClock()], ids=["manual"])
async def test_a_message_that_comes_alone_leaves_before_the_turn_ends(
    held: Server, clock: ManualClock
) -> None:
    subscriber, publisher, wire = await a_way(held)
    sent = held.broker.traffic.network_sent
    clock.step(1.0)
    packet = Publish("a", b"3")
    await publisher.send(packet)
    assert await subscriber.receive() == packet
    serves_itself = isinstance(asyncio.get_running_loop(), GatewayLoop)
    assert wire.written == ([encode(packet, MQTT_5)] if serves_itself else [])
    assert held.broker.traffic.network_sent == sent + len(encode(packet, MQTT_5))
    assert held.broker.clients["publisher"].last_received == clock.monotonic()


@pytest.mark.asyncio(loop_factories=["gateway"])
async def test_a_mistake_while_writing_at_once_ends_the_publisher_s_connection(
    held: Server,
) -> None:
    subscriber, publisher, wire = await a_way(held)
    wire.transport = None
    await publisher.send(Publish("a", b"3"))
    (disconnect,) = await publisher.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert held.counters.count("tidegate/clients/errors") == 1
    assert not await subscriber.waiting()


async def test_nothing_is_written_at_once_to_a_peer_that_reads_nothing(narrow: Server) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.say_connect("slow")
    await slow.subscribe("a")
    publisher = await narrow.clients.connect("publisher")
    connection = narrow.broker.clients["slow"].connection

    def takes_any() -> bool:
        return connection.output.transport is not None

    assert takes_any()
    sent = 0
    while takes_any() or not connection.congested:
        await publisher.send(Publish("a", b"%05d" % sent * 200))
        await publisher.send(PingReq())
        assert await publisher.receive() == PingResp()
        sent += 1
    received = [await slow.receive() for _ in range(sent)]
    assert received == [Publish("a", b"%05d" % number * 200) for number in range(sent)]
    assert takes_any()


async def test_a_peer_that_is_gone_before_it_is_told(
    held: Server, caplog: pytest.LogCaptureFixture
) -> None:
    peer = socket.create_connection((HOST, held.port))
    peer.send(encode(Connect("c", MQTT_3_1_1), MQTT_3_1_1))
    await until(lambda: "c" in held.broker.clients)
    peer.recv(4)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    held.broker.clients["c"].disconnect(ReasonCode.ADMINISTRATIVE_ACTION)
    held.turn.end()  # before the loop learns of the reset
    await until(lambda: held.counters.values["tidegate/connections/open"] == 0)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_client_that_said_goodbye_is_not_waited_for(held: Server) -> None:
    with socket.create_connection((HOST, held.port)) as peer:  # stays open
        peer.sendall(encode(Connect("c", MQTT_3_1_1), MQTT_3_1_1) + b"\xe0\0")
        await until(lambda: held.counters.values.get("tidegate/connections/open") == 0)
        assert await asyncio.to_thread(peer.recv, 100) == b"\x20\x02\0\0"
        assert await asyncio.to_thread(peer.recv, 100) == b""
    assert held.counters.count("tidegate/connections/aborted") == 0
    assert not held.broker.connections


async def test_a_connack_does_not_wait_for_others(held: Server) -> None:
    """It leaves before those behind it in the same turn are read."""
    with socket.create_connection((HOST, held.port)) as peer:
        await until(lambda: len(held.listener.reception.clients) == 1)
        (transport,) = held.listener.reception.clients
        transport.data_received(encode(Connect("c", MQTT_3_1_1), MQTT_3_1_1))
        peer.settimeout(0)  # the loop has not run since
        assert peer.recv(100) == b"\x20\x02\0\0"


async def test_what_waits_for_the_disk_leaves_after_a_goodbye(
    held: Server, held_writer: HeldWriter
) -> None:
    client = await held.clients.connect("c")
    await client.send(Publish("up/a", qos=1, packet_id=7), Disconnect())
    await until(lambda: held.rows.taken == 1)
    other = await held.clients.connect("other")
    assert not await other.waiting()
    held_writer.commit()
    assert await client.until_closed() == [PubAck(7)]


async def test_what_a_client_did_not_read_before_its_goodbye_is_written(narrow: Server) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.say_connect("slow")
    await slow.subscribe("a")
    publisher = await narrow.clients.connect("p")
    for number in range(100):  # of different lengths: no runs
        await publisher.send(Publish("a", b"x" * (1_000 + number)))
    theirs = narrow.broker.clients["slow"]
    await until(lambda: theirs.connection.congested)
    await slow.send(Disconnect())
    await until(lambda: theirs.said_goodbye)
    messages = theirs.connection.packets_sent - 2  # without CONNACK and SUBACK
    packets = await slow.until_closed()
    assert packets == [Publish("a", b"x" * (1_000 + number)) for number in range(messages)]
    await until(lambda: theirs not in narrow.broker.connections)


async def test_a_mistake_when_a_client_leaves_keeps_no_place(
    held: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = await held.clients.connect("c")

    def faulty(*_: object) -> None:
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(sessions, "leave", faulty)
        await client.close()
        await until(lambda: held.counters.values["tidegate/connections/open"] == 0)
    assert held.counters.count("tidegate/clients/errors") == 1
    assert [record for record in caplog.records if record.exc_info is not None]
    other = await held.clients.connect("other")
    assert not await other.waiting()


async def test_a_session_goes_on_over_a_new_connection(held: Server) -> None:
    lasting: dict[str, object] = {
        "clean_start": False,
        "properties": Properties(session_expiry_interval=60),
    }
    first = await held.clients.connect("c", **lasting)
    await first.subscribe("a", 1)
    first.reset()
    await until(lambda: not held.broker.clients)
    publisher = await held.clients.connect("p")
    await publisher.send(Publish("a", b"1", 1, packet_id=1))
    assert await publisher.receive() == PubAck(1)
    second = await held.clients.connect("c", **lasting)
    assert second.connack.session_present
    assert await second.receive() == Publish("a", b"1", 1, packet_id=1)


async def test_bytes_are_counted(held: Server) -> None:
    client = await held.clients.connect("c", MQTT_3_1_1)
    assert not await client.waiting()
    assert held.broker.traffic.network_received == 2 + 13 + 2
    assert held.broker.traffic.network_sent == 4 + 2
