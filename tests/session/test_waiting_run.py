"""Runs in a queue: counted as their messages would be, cut where a window ends, opened if asked."""

from collections.abc import Sequence

import pytest

from gateway.mqtt.encode import encode
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.mqtt.stored_run import stored_run
from gateway.session import delivery_queue
from gateway.session.delivery import Delivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.message_run import MessageRun
from gateway.session.queue_memory import QueueMemory
from gateway.session.waiting_run import WaitingRun

OVERHEAD = -300


class Row:
    """A row that notes what it is told."""

    last = 0  # nothing is read back

    def __init__(self, batch: int = 0) -> None:
        self.batch = batch
        self.told: list[tuple[int, int]] = []

    def done(self, place: int, count: int) -> None:
        raise AssertionError("nobody acknowledges here")

    def opened(self, place: int, deliveries: Sequence[Delivery]) -> None:
        self.told.append((place, len(deliveries)))
        for number, delivery in enumerate(deliveries, place):
            delivery.place = number
            delivery.kept = delivery.size - 110 + OVERHEAD


def waiting_run(count: int, place: int, row: Row | None = None) -> WaitingRun:
    data = b"".join(
        encode(Publish("a/b", b"%d" % n, 1, packet_id=n + 1), MQTT_5) for n in range(count)
    )
    packets = stored_run(data, "a/b", properties=True)
    run = MessageRun(packets, MQTT_5, "a/b", 1, "c", None, 0, 0.0, 0.0, None, 430)
    run.owed = 1
    return WaitingRun(run, place, row or Row(), OVERHEAD)


@pytest.fixture
def memory() -> QueueMemory:
    return QueueMemory()


@pytest.fixture
def queue(memory: QueueMemory) -> DeliveryQueue:
    return DeliveryQueue(memory=memory)


def figures(queue: DeliveryQueue, memory: QueueMemory) -> tuple[int, ...]:
    in_memory = queue._memory_bytes, queue._head_bytes
    return (len(queue), queue.bytes, *in_memory, memory.bytes, memory.messages, memory.deliveries)


@pytest.mark.parametrize("count", [1, 7, 11])
def test_an_opened_run_counts_as_before(
    queue: DeliveryQueue, memory: QueueMemory, count: int
) -> None:
    row = Row()
    queue.restore(waiting_run(count, 5, row))
    before = figures(queue, memory)
    assert queue.first().message.payload == b"0"
    assert row.told == [(5, count)]
    assert queue.next_run is None
    assert figures(queue, memory) == before
    assert [queue.popleft().place for _ in range(count)] == [*range(5, 5 + count)]
    assert figures(queue, memory) == (0,) * 7
    assert memory.disk_bytes == 0


def test_parts_of_a_run_count_as_the_whole(queue: DeliveryQueue, memory: QueueMemory) -> None:
    whole = waiting_run(12, 5)
    queue.restore(whole)
    before = figures(queue, memory)
    first = queue.take_run(whole, 5)
    assert (first.place, first.count, len(queue)) == (5, 5, 7)
    rest = queue.next_run
    assert rest is not None
    assert (rest.place, rest.count) == (10, 7)
    assert (first.size + rest.size, first.kept + rest.kept) == (whole.size, whole.kept)
    queue.restore(first)
    assert figures(queue, memory) == before
    assert queue.take_run(rest, 7) is rest
    assert queue.take_run(first, 100) is first
    assert figures(queue, memory) == (0,) * 7


def test_what_is_shared_is_let_go_by_itself(queue: DeliveryQueue, memory: QueueMemory) -> None:
    whole = waiting_run(12, 1)
    other = DeliveryQueue(memory=memory)
    for each in (queue, other):
        each.restore(WaitingRun(whole.run, 1, Row(), OVERHEAD))
    assert (memory.messages, memory.deliveries) == (12, 24)
    waiting = queue.next_run
    assert waiting is not None
    queue.take_run(waiting, 5)
    assert (memory.messages, memory.deliveries) == (19, 19)
    queue.clear()
    assert (memory.messages, memory.deliveries, len(queue)) == (12, 12, 0)
    other.clear()
    assert (memory.bytes, memory.messages, memory.deliveries) == (0, 0, 0)


def test_a_run_leaves_memory_when_it_is_on_disk(
    queue: DeliveryQueue, memory: QueueMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_queue, "HEAD_MESSAGES", 3)
    rows = [Row(), Row(), Row()]
    runs = [waiting_run(5, 1 + 5 * number, row) for number, row in enumerate(rows)]
    for run in runs:
        queue.restore(run)
    rows[1].batch = rows[0].batch = 7
    rows[2].batch = 8
    assert not queue.let_go(6)
    assert queue.paged == 0
    assert not queue.let_go(7)
    assert (queue.paged, memory.deliveries, len(queue)) == (5, 10, 15)
    assert runs[1].run.owed == 0
    assert queue.let_go(8)
    assert (queue.paged, memory.paged, memory.deliveries) == (10, 10, 5)
    assert queue.take_run(runs[0], 5) is runs[0]
    assert queue.waits_for_page
    assert queue.begin_page() == (5, 15)
    queue.take_page([waiting_run(5, 6)], complete=False)
    assert (queue.paged, memory.paged, memory.deliveries) == (5, 5, 5)
    queue.clear()
    assert (memory.bytes, memory.disk_bytes, memory.paged_bytes) == (0, 0, 0)


def test_runs_do_not_expire(queue: DeliveryQueue) -> None:
    queue.restore(waiting_run(5, 1))
    short = Message("t", b"x", 1, message_expiry=10, arrived=0.0)
    queue.restore(Delivery(short, 1))
    assert [each.message for each in queue.remove_expired(11.0)] == [short]
    assert queue.remove_qos_0() == 0
    assert len(queue) == 5
