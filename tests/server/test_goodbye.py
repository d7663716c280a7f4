"""What happens when a client goes."""

import asyncio
import logging
import socket
import struct

import pytest

from gateway.broker import sessions
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, Connect, Disconnect, PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import until
from tests.support.processes.server import HOST, SMALL, HeldWriter, Server, congest


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
        connections = held.listener.connections
        # a turn that has used up its time would handle a CONNECT later
        await until(lambda: len(connections.clients) == 1 and not held.turn.overrun)
        (transport,) = connections.clients
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
    await slow.connect_as("slow")
    await slow.subscribe("a")
    publisher = await narrow.clients.connect("p")
    theirs = narrow.broker.clients["slow"]
    await congest(theirs, publisher)
    await slow.send(Disconnect())
    await until(lambda: theirs.sent_disconnect)
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
        patch.setattr(sessions, "disconnect", faulty)
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
