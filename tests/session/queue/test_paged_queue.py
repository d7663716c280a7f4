"""A queue most of which is on disk alone: what its model comes to now and then, told apart."""

import pytest

from gateway.mqtt.properties import Properties
from gateway.session.queue import delivery_queue
from gateway.session.queue import memory as queue_memory
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.queue.memory import QueueMemory
from tests.support.broker.spans import kept, unkept


@pytest.fixture(autouse=True)
def small_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "HEAD_MESSAGES", 3)


def paged(count: int, memory: QueueMemory | None = None) -> DeliveryQueue:
    """Return a queue whose first messages are in memory, and the others not."""
    queue = DeliveryQueue(memory=memory)
    for sequence in range(1, count + 1):
        queue.append(kept(sequence))
    assert queue.forget_written(1)
    return queue


def sequences(queue: DeliveryQueue) -> list[int]:
    return [span.sequence for span in queue]


def empty_head(queue: DeliveryQueue) -> None:
    while not queue.waits_for_page:
        queue.pop(1)


def test_what_is_next_is_in_memory_however_much_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_memory, "MAXIMUM_HEAD_BYTES", 0)
    queue = paged(2)
    assert next(iter(queue)).sequence == 1
    assert (len(queue), queue.paged) == (2, 1)


def test_what_is_not_on_disk_moves_up_to_the_head() -> None:
    queue = DeliveryQueue()
    for sequence in range(1, 6):
        queue.append(kept(sequence, batch=0))
    queue.pop(1)
    assert not queue.forget_written(1)
    assert (sequences(queue), queue.paged) == ([2, 3, 4, 5], 0)


def test_all_of_the_tail_may_go_while_a_page_of_it_is_read() -> None:
    queue = paged(4)
    empty_head(queue)
    queue.begin_page()
    assert queue.remove_paged(4, kept(4).disk_bytes, 1)
    queue.append(kept(5, batch=0))
    assert queue.pop(1).sequence == 5
    queue.accept_page([], complete=True)
    queue.append(kept(6, batch=0))
    assert (len(queue), queue.paged, next(iter(queue)).sequence) == (1, 0, 6)


def test_what_stays_between_is_next_when_the_tail_is_gone() -> None:
    queue = paged(5)
    queue.append(unkept())
    queue.append(kept(7))
    queue.forget_written(1)
    for sequence in (4, 5, 7):
        assert queue.remove_paged(sequence, kept(4).disk_bytes, 1)
    assert not queue.remove_paged(3, kept(3).disk_bytes, 1)
    assert (sequences(queue), queue.paged) == ([1, 2, 3, 0], 0)


def test_what_stays_between_goes_when_it_has_expired() -> None:
    queue = paged(5)
    for expiry in (1, 9):
        queue.append(unkept(properties=Properties(message_expiry_interval=expiry)))
    queue.append(kept(8))
    queue.forget_written(1)
    assert [each.publication.properties.expiry for each in queue.remove_expired(5.0)] == [1]
    assert sequences(queue) == [1, 2, 3, 0]
    assert (len(queue), queue.paged) == (7, 3)


def test_what_is_not_on_disk_behind_a_tail_is_replaced() -> None:
    queue = paged(4)
    queue.append(waiting := kept(5, batch=0))
    queue.replace(waiting, kept(6, batch=0))
    assert (sequences(queue), queue.paged) == ([1, 2, 3, 6], 1)
    empty_head(queue)
