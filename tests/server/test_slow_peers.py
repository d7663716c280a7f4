"""Peers that read slowly, or nothing."""

import asyncio

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, PingReq, PingResp, Publish, Will
from gateway.server import transport as transport_module
from gateway.server import turn as turn_module
from gateway.session import traffic
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.processes.server import SMALL, HeldWriter, Server, congest

READ_AT_ONCE = 256 * 1024
"""Bytes that the event loop reads from a socket at a time."""


async def test_much_for_many_takes_several_turns(
    held: Server, held_writer: HeldWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await held.clients.connect("c")
    await client.subscribe("#")
    monkeypatch.setattr(traffic, "TURN_BYTES", 1)
    monkeypatch.setattr(turn_module, "_TURN_BYTES", 1)
    assert not await client.waiting()
    before = held_writer.turns
    messages = [Publish("ab"[number % 2], b"%02d" % number) for number in range(20)]
    await client.send(*messages)
    assert [await client.receive() for _ in messages] == messages
    assert held_writer.turns - before >= 20


async def test_a_client_that_reads_nothing_does_not_stop_others(narrow: Server) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.connect_as("slow")
    await slow.subscribe("a", 1)
    fast = await narrow.clients.connect("fast")
    await fast.subscribe("a")
    publisher = await narrow.clients.connect("p")
    for number in range(90):
        await publisher.send(Publish("a", b"%02d" % number * 1_000))
        publish = await fast.take(Publish)
        assert publish.payload.startswith(b"%02d" % number)
    assert len(narrow.broker.sessions["slow"].queue) > 40
    payloads = []
    for _ in range(90):
        publish = await slow.take(Publish)
        payloads.append(publish.payload[:2])
    assert payloads == [b"%02d" % number for number in range(90)]


@pytest.mark.uncovered
async def test_a_client_that_reads_no_answers_is_read_no_more(narrow: Server) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.connect_as("slow")
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


@pytest.mark.uncovered
@pytest.mark.parametrize("clock", [ManualClock()], ids=["manual"])
async def test_a_slow_subscriber_is_still_heard(narrow: Server, clock: ManualClock) -> None:
    slow = await narrow.clients.open(receive_buffer=SMALL)
    await slow.connect_as("slow", keep_alive=1)
    await slow.subscribe("a")
    other = await narrow.clients.connect("other")
    await other.subscribe("b")
    await congest(narrow.broker.clients["slow"], other)
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
    await slow.connect_as("slow", will=Will("wills/slow", b"gone"))
    await slow.subscribe("a")
    watcher = await narrow.clients.connect("watcher")
    await watcher.subscribe("wills/+")
    publisher = await narrow.clients.connect("p")
    await congest(narrow.broker.clients["slow"], publisher)
    second = await narrow.clients.connect("slow")
    assert await watcher.receive() == Publish("wills/slow", b"gone")
    await until(lambda: len(narrow.broker.connections) == 3)
    assert not await second.waiting()
