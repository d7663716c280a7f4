"""Batches that wait for a client that is away, with their rows."""

from gateway.mqtt.packets import PubAck
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.publishing import batch, published
from tests.support.disk.counted_rows import everything_is_counted
from tests.support.disk.sqlite_disk import SqliteDisk

COUNT = 20


def publish(harness: Harness, count: int = COUNT, first: int = 1, topic: str = "a/b") -> None:
    """Publish numbers from `first` on in one read."""
    publisher = harness.connect("publisher")
    publisher.send(*batch(count, 1, first, topic))
    publisher.drop()


def rows(disk: SqliteDisk) -> list[tuple[int, int]]:
    """Return place and number of messages of each row."""
    return disk.connection.execute("SELECT sequence, messages FROM delivery ORDER BY 1").fetchall()


def sent(client: MemoryClient) -> list[tuple[int, bool]]:
    """Return the numbers that have come, and whether with DUP."""
    return [(int(each.payload), each.dup) for each in published(client)]


def numbers(first: int, end: int, *, dup: bool = False) -> list[tuple[int, bool]]:
    return [(number, dup) for number in range(first, end)]


def acknowledge(client: MemoryClient, *packet_ids: int) -> None:
    client.send(*(PubAck(packet_id) for packet_id in packet_ids))


def drain(client: MemoryClient, most: int = 65_535) -> list[tuple[int, bool]]:
    """Return everything that comes, at most so many at a time, while it is acknowledged."""
    found: list[tuple[int, bool]] = []
    while new := published(client):
        assert len(new) <= most
        found += [(int(each.payload), each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    return found


def nothing_is_left(harness: DurableHarness) -> None:
    """Hold that nobody is owed anything, in memory and on disk."""
    memory, disk = harness.broker.queue_memory, harness.disk
    harness.pass_time(2)
    everything_is_counted(harness)
    assert (memory.bytes, memory.deliveries, memory.disk_bytes, memory.messages) == (0, 0, 0, 0)
    assert (disk.count("delivery"), disk.count("message")) == (0, 0)
