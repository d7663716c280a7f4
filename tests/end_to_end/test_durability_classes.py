"""What each durability class promises, asked of a gateway that is killed."""

import time

from gateway.mqtt.packets import Disconnect, PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

WINDOW = 0.3
"""Seconds of the class `batch` below."""

CONFIG = """
[broker]
sys_interval = 0.1
[[durability]]
topic = "position/#"
class = "memory"
[[durability]]
client = "logger-*"
class = "batch(300)"
"""

STAYS = Properties(session_expiry_interval=3600)


async def leave_a_session(clients: Clients) -> None:
    subscriber = await clients.connect("s", clean_start=False, properties=STAYS)
    for topic_filter in ("position/#", "valve/#"):
        await subscriber.subscribe(topic_filter, 1)
    await subscriber.send(Disconnect())
    await subscriber.until_closed()


async def publish(client: RawClient, topic: str) -> float:
    """Publish at QoS 1 and return the seconds until it was acknowledged."""
    begin = time.perf_counter()
    await client.send(Publish(topic, topic.encode(), 1, packet_id=1))
    answer = await client.take(PubAck)
    assert answer.reason_code < 0x80
    return time.perf_counter() - begin


async def test_what_a_class_promises_is_there_after_a_kill(
    gateway: GatewayProcess, clients: Clients
) -> None:
    await leave_a_session(clients)
    publisher = await clients.connect("p")
    logger = await clients.connect("logger-1")
    await publish(publisher, "position/a")
    await publish(publisher, "valve/now")
    assert await publish(logger, "valve/later") >= WINDOW  # nothing else was committed meanwhile
    await publish(logger, "position/b")
    gateway.kill()
    gateway.start()
    subscriber = await clients.connect("s", clean_start=False, properties=STAYS)
    waiting = await subscriber.waiting()
    payloads = [packet.payload for packet in waiting if isinstance(packet, Publish)]
    assert payloads == [b"valve/now", b"valve/later"]


async def test_what_is_promised_can_be_read_from_outside(clients: Clients) -> None:
    watcher = await clients.connect("watcher")
    await watcher.subscribe("$SYS/broker/tidegate/storage/durability")
    assert (await watcher.receive()).payload == b"commit"  # type: ignore[union-attr]  # a PUBLISH
    await watcher.subscribe("$SYS/broker/tidegate/storage/durability_classes")
    described = b"topic position/#: memory; client logger-*: batch(300)"
    assert (await watcher.receive()).payload == described  # type: ignore[union-attr]  # a PUBLISH
