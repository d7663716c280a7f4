"""A queue most of which is on disk alone: what its model comes to now and then, told apart."""

import pytest

from gateway.mqtt.properties import Properties
from gateway.session import delivery_queue, queue_memory
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.queue_memory import QueueMemory
from tests.support.spans import kept, unkept


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
        queue.take(1)


def test_only_the_head_stays_in_memory() -> None:
    queue = paged(10)
    assert (sequences(queue), len(queue), queue.paged) == ([1, 2, 3], 10, 7)


def test_the_last_span_of_the_head_may_exceed_it() -> None:
    queue = DeliveryQueue()
    for sequence in (1, 6, 11):
        queue.append(kept(sequence, 5, batch=sequence // 5))
    assert not queue.forget_written(1)
    assert (sequences(queue), queue.paged) == ([1, 11], 5)
    assert queue.forget_written(2)
    assert (sequences(queue), queue.paged) == ([1], 10)
    queue.take(5)
    assert queue.begin_page() == (5, 15)


def test_what_is_not_on_disk_yet_stays_in_memory() -> None:
    queue = paged(10)
    queue.append(kept(11, batch=0))
    queue.append(kept(12, batch=2))
    assert not queue.forget_written(1)
    assert sequences(queue) == [1, 2, 3, 11, 12]


def test_what_is_next_is_in_memory_however_much_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_memory, "MAXIMUM_HEAD_BYTES", 0)
    queue = paged(2)
    assert next(iter(queue)).sequence == 1
    assert (len(queue), queue.paged) == (2, 1)


def test_what_could_not_be_read_is_counted_no_more() -> None:
    queue = paged(10)
    empty_head(queue)
    assert queue.begin_page() == (3, 10)
    queue.take_page([kept(5)], complete=True)
    assert (len(queue), queue.bytes) == (1, kept(5).kept)


def test_what_came_meanwhile_is_read_with_the_next_page() -> None:
    queue = paged(5)
    queue.take(1)
    queue.take(1)
    assert queue.begin_page() == (3, 5)
    queue.append(kept(6))
    queue.forget_written(1)
    queue.take_page([kept(4), kept(5)], complete=True)
    assert (len(queue), queue.paged) == (4, 1)
    empty_head(queue)
    assert queue.begin_page() == (5, 6)


def test_all_of_the_tail_may_go_while_a_page_of_it_is_read() -> None:
    queue = paged(4)
    empty_head(queue)
    queue.begin_page()
    assert queue.remove_paged(4, kept(4).kept, 1)
    queue.append(kept(5, batch=0))
    assert queue.take(1).sequence == 5
    queue.take_page([], complete=True)
    queue.append(kept(6, batch=0))
    assert (len(queue), queue.paged, next(iter(queue)).sequence) == (1, 0, 6)


def test_what_is_not_written_keeps_its_place_before_a_page() -> None:
    queue = paged(5)
    queue.append(unkept())
    queue.append(kept(7))
    queue.forget_written(1)
    empty_head(queue)
    queue.begin_page()
    queue.take_page([kept(4), kept(5), kept(7)], complete=True)
    assert sequences(queue) == [4, 5, 0, 7]


def test_what_stays_between_is_next_when_the_tail_is_gone() -> None:
    queue = paged(5)
    queue.append(unkept())
    queue.append(kept(7))
    queue.forget_written(1)
    for sequence in (4, 5, 7):
        assert queue.remove_paged(sequence, kept(4).kept, 1)
    assert not queue.remove_paged(3, kept(3).kept, 1)
    assert (sequences(queue), queue.paged) == ([1, 2, 3, 0], 0)


def test_clearing_takes_what_is_on_disk_out_of_the_accounts() -> None:
    memory = QueueMemory()
    queue = paged(9, memory)
    queue.clear()
    assert (len(queue), queue.bytes, memory.disk_bytes, memory.paged, memory.bytes) == (0,) * 5


def test_what_stays_between_goes_when_it_has_expired() -> None:
    queue = paged(5)
    for expiry in (1, 9):
        queue.append(unkept(properties=Properties(message_expiry_interval=expiry)))
    queue.append(kept(8))
    queue.forget_written(1)
    assert [each.publication.properties.expiry for each in queue.remove_expired(5.0)] == [1]
    assert sequences(queue) == [1, 2, 3, 0]
    assert (len(queue), queue.paged) == (7, 3)
