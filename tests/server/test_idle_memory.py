"""What connections cost while nothing happens on them, and what is left when they are gone."""

import asyncio
import gc
import socket
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    Connect,
    Packet,
    PubAck,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from gateway.server.gateway_loop import GatewayLoop
from tests.support.disk.storage import until
from tests.support.processes.server import HOST, HeldWriter, Server

COUNT = 200

FIRST = 20
"""Clients whose messages are not measured."""

LARGEST = 2_300
"""Bytes of Python's objects for each connection with keep alive, 100 of them for whose its session
is and what its client holds of all, and 140 for what the log counts of each of 2,000 clients;
2.6 KiB are all that it may take, with what the allocators round up."""

LARGEST_UNDER_ASYNCIO = 4_000 if sys.version_info < (3, 13) else 4_500
"""The same with asyncio's own transport, which is for TLS, WebSocket and other platforms."""

LARGEST_OF_TOPIC = 1_080
"""Bytes that are kept for a client which sent a QoS 1 message to a topic of its own, and got it:
the subscription, the topic name with its route and what it matches, the window of one message."""

WARM = 3
"""Times that all connections come and go before tables are as large as they stay."""

CANCELLED = 200
"""Timers with which asyncio forgets all cancelled ones: it keeps up to 100 of them, or half."""

LITTLE = 25_000
"""Bytes that tables may have grown by meanwhile: 41 for each connection that was there. A dict of
some 400 entries that is rebuilt takes 18,440 of them."""


@contextmanager
def clients(port: int, *more: Publish | Subscribe) -> Iterator[list[socket.socket]]:
    """Give sockets that have sent CONNECT and `more`, before anybody accepted them."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((HOST, port))) for _ in range(COUNT)]
        for number, each in enumerate(opened):
            packets = [Connect(f"client-{number}", MQTT_3_1_1, keep_alive=60), *more]
            each.sendall(b"".join(encode(packet, MQTT_3_1_1) for packet in packets))
        yield opened


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def forget_cancelled_timers() -> None:
    """Have asyncio drop those of connections that are gone; how many it keeps is chance."""
    loop = asyncio.get_running_loop()
    for _ in range(CANCELLED):
        loop.call_later(3_600, int).cancel()
    for _ in range(2):
        await asyncio.sleep(0)


@pytest.mark.uncovered
async def test_an_idle_connection_takes_little(held: Server) -> None:
    lean = isinstance(asyncio.get_running_loop(), GatewayLoop)
    with clients(held.port), traced():
        before = in_use()
        await until(lambda: len(held.broker.clients) == COUNT)
        each = (in_use() - before) / COUNT
    assert each < (LARGEST if lean else LARGEST_UNDER_ASYNCIO)


def have_messages(opened: list[socket.socket], first: int) -> None:
    """Let each send a message to a topic of its own, and get it; these topics begin at `first`."""
    for number, each in enumerate(opened, first):
        topic = f"site/{number}/temperature"
        packets: list[Packet] = [
            Subscribe(1, [SubscriptionRequest(topic, 1)]),
            Publish(topic, b"21", 1, packet_id=1),
            PubAck(1),
        ]
        each.sendall(b"".join(encode(packet, MQTT_3_1_1) for packet in packets))


@pytest.mark.uncovered
async def test_a_client_that_had_messages_takes_little_more(held: Server) -> None:
    def have_had(messages: int) -> bool:
        outputs = [each.connection.output for each in held.broker.connections]
        return held.broker.traffic.messages_sent == messages and not any(
            each.size for each in outputs
        )

    with clients(held.port) as opened, traced():
        await until(lambda: len(held.broker.clients) == COUNT)
        have_messages(opened[:FIRST], 0)  # what code makes that runs for the first time
        await until(lambda: have_had(FIRST))
        before = in_use()
        have_messages(opened[FIRST:], FIRST)
        await until(lambda: have_had(COUNT))
        each_more = (in_use() - before) / (COUNT - FIRST)
    assert each_more < LARGEST_OF_TOPIC


@pytest.mark.uncovered
async def test_connections_that_are_gone_leave_nothing(
    held: Server, held_writer: HeldWriter
) -> None:
    subscribe = Subscribe(1, [SubscriptionRequest("a/#", 1)])
    publish = Publish("up/a", b"1", 1, packet_id=2)
    own = len(held.broker.router)  # subscriptions of the server's own

    async def come_and_go(times: int) -> int:
        with clients(held.port, subscribe, publish):
            await until(lambda: held.rows.taken == times * COUNT)
            held_writer.commit()
        await until(lambda: not held.broker.connections and len(held.broker.router) == own)
        held_writer.rows.clear()
        await forget_cancelled_timers()
        return in_use()

    with traced():
        for times in range(1, WARM + 1):
            first = await come_and_go(times)
        for times in range(WARM + 1, WARM + 4):
            last = await come_and_go(times)
    assert last - first < LITTLE
