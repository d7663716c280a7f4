"""What leaves before the turn ends."""

import asyncio

import pytest

from gateway.mqtt.encode import encode
from gateway.mqtt.output import Writing
from gateway.mqtt.packets import MQTT_5, Disconnect, PingReq, PingResp, Publish
from gateway.server.gateway_loop import GatewayLoop
from tests.support.clocks import ManualClock
from tests.support.raw_client import RawClient
from tests.support.server import SMALL, Server


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
