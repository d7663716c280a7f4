import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.properties import Properties
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.queue.memory import MAXIMUM_MEMORY, QueueMemory
from gateway.session.span import SPAN_OVERHEAD, Span
from tests.support.broker.publications import publish
from tests.support.broker.spans import kept, unkept


def test_an_empty_queue_has_no_next_span() -> None:
    assert DeliveryQueue().first() is None
    with pytest.raises(IndexError):
        DeliveryQueue().pop(1)


SIZES = st.lists(st.sampled_from([0, 1, 400, 2_000]), min_size=1, max_size=8)


@given(SIZES, st.integers(0, 9_000), st.integers(0, 9), st.sampled_from(["own", "all", "disk"]))
def test_room_is_what_one_by_one_finds_room(
    sizes: list[int], bound: int, messages: int, which: str
) -> None:
    """A message finds room while a bound is not reached; the last one may exceed it."""
    memory = QueueMemory(
        bound if which == "all" else 1 << 30, bound if which == "disk" else 1 << 30
    )
    queue = DeliveryQueue(messages, bound if which == "own" else 1 << 30, memory)
    other = unkept()
    publication = publish([b"x" * size for size in sizes])
    room, taken = queue.capacity(publication, 0, len(sizes)), 0
    assert (room == 0) == queue.full == queue.over(1)
    size = 0
    while taken < min(len(sizes), messages) and size < bound:
        size += publication.size(taken, 1) + SPAN_OVERHEAD
        taken += 1
    assert room == taken
    memory.add(other)
    assert queue.capacity(publication, 0, len(sizes)) <= room


def test_what_is_not_on_disk_is_bounded_by_memory() -> None:
    queue = DeliveryQueue()
    publication = publish([b"x" * 600] * 1_000)
    while count := queue.capacity(publication, 0, 1_000):
        assert queue.bytes <= MAXIMUM_MEMORY
        queue.append(Span(publication, 0, count, 1))
    assert MAXIMUM_MEMORY <= queue.bytes < MAXIMUM_MEMORY + 2_000
    assert len(queue) > 50_000
    assert queue.memory_full


def test_queues_that_share_a_full_memory_refuse_the_newest() -> None:
    memory = QueueMemory(maximum_bytes=1)
    first, second = DeliveryQueue(memory=memory), DeliveryQueue(memory=memory)
    full = [second.full]
    first.append(unkept())
    full += [second.full, second.memory_full]
    first.pop(1)
    assert [*full, second.full] == [False, True, True, False]


def test_the_disk_is_one_bound_for_all_and_memory_another() -> None:
    memory = QueueMemory(maximum_disk_bytes=1)
    DeliveryQueue(memory=memory).append(kept(1))
    other = DeliveryQueue(memory=memory)
    assert (other.full, other.memory_full) == (True, False)


def test_what_expires_is_asked_for_no_earlier_than_it_does() -> None:
    queue = DeliveryQueue()
    for expiry in (None, 5, 7, None, 5):
        properties = Properties(message_expiry_interval=expiry)
        queue.append(unkept(2, properties=properties))
    assert queue.remove_expired(4.9) == []
    assert sum(span.count for span in queue.remove_expired(5.0)) == 4
    assert queue.remove_expired(6.9) == []
    left = [span.publication.properties.expiry for span in queue]
    assert left == [None, 7, None]
    assert len(queue) == 6


@pytest.mark.parametrize("count", [1, 20])
def test_a_span_takes_about_what_its_messages_are_counted_for(count: int) -> None:
    publication = unkept(count).publication
    queue = DeliveryQueue()
    tracemalloc.start()
    for _ in range(1_000):
        queue.append(Span(publication, 0, count, 1))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / (1_000 * count * SPAN_OVERHEAD) <= 1.2
