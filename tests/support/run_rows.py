"""Runs that wait for clients that are away, with their rows."""

from gateway.mqtt.packets import PubAck, Publish
from tests.support import durable_broker
from tests.support.broker_harness import Harness
from tests.support.counted_rows import everything_is_counted
from tests.support.durable_broker import DurableHarness
from tests.support.memory_client import MemoryClient
from tests.support.sqlite_disk import SqliteDisk

RUN = 20


def away(harness: Harness, name: str = "away", topic_filter: str = "a/#") -> None:
    """Leave a persistent session behind that these runs are for."""
    durable_broker.away(harness, topic_filter, name, 1)


def publish(harness: Harness, count: int = RUN, first: int = 0, topic: str = "a/b") -> None:
    publisher = harness.connect("publisher")
    publisher.send(
        *(Publish(topic, b"%d" % n, 1, packet_id=n + 1) for n in range(first, first + count))
    )
    publisher.drop()


def rows(disk: SqliteDisk) -> list[tuple[int, int]]:
    """Return place and number of messages of each row."""
    return disk.connection.execute("SELECT place, messages FROM delivery ORDER BY 1").fetchall()


def payloads(client: MemoryClient) -> list[tuple[bytes, bool]]:
    return [(each.payload, each.dup) for each in client.take() if isinstance(each, Publish)]


def numbers(first: int, end: int, *, dup: bool = False) -> list[tuple[bytes, bool]]:
    return [(b"%d" % number, dup) for number in range(first, end)]


def acknowledge(client: MemoryClient, *packet_ids: int) -> None:
    client.send(*(PubAck(packet_id) for packet_id in packet_ids))


def nothing_is_left(harness: DurableHarness) -> None:
    memory, disk = harness.broker.queue_memory, harness.disk
    harness.pass_time(2)
    everything_is_counted(harness)
    assert (memory.bytes, memory.deliveries, memory.disk_bytes, memory.messages) == (0, 0, 0, 0)
    assert (disk.count("delivery"), disk.count("message")) == (0, 0)
