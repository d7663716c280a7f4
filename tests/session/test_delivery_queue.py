import tracemalloc
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.message_size import message_size
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.queue_bounds import MAXIMUM_MEMORY
from gateway.session.queue_memory import DELIVERY_OVERHEAD, QueueMemory


def reading(number: int, expiry: int | None = None) -> Message:
    return Message(f"sensors/n{number}/temperature", b"21.5", qos=1, message_expiry=expiry)


def test_the_order_of_appending_is_the_order_of_delivery() -> None:
    queue = DeliveryQueue()
    deliveries = [Delivery(reading(number), 1) for number in range(5)]
    assert all(queue.append(delivery) for delivery in deliveries)
    assert queue.first() is deliveries[0]
    assert [queue.popleft() for _ in deliveries] == deliveries
    assert (len(queue), queue.bytes) == (0, 0)


@pytest.mark.parametrize("take", [DeliveryQueue.first, DeliveryQueue.popleft])
def test_an_empty_queue_has_no_next_delivery(take: Callable[[DeliveryQueue], Delivery]) -> None:
    with pytest.raises(IndexError):
        take(DeliveryQueue())


def test_what_is_not_on_disk_is_bounded_by_memory() -> None:
    queue = DeliveryQueue()
    message = Message("sensors/node-17/temperature", b"x" * 600, qos=1)
    while queue.append(Delivery(message, 1)):
        assert queue.bytes <= MAXIMUM_MEMORY + Delivery(message, 1).size
    assert queue.bytes >= MAXIMUM_MEMORY
    assert len(queue) > 50_000
    assert queue.memory_full


def test_full_by_bytes_after_the_delivery_that_reaches_the_limit() -> None:
    delivery = Delivery(reading(1), 1)
    queue = DeliveryQueue(maximum_bytes=delivery.size + 1)
    assert [(queue.full, queue.append(delivery)) for _ in range(3)] == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert queue.bytes == 2 * delivery.size


def test_a_message_larger_than_the_limit_passes_an_empty_queue() -> None:
    queue = DeliveryQueue(maximum_bytes=1)
    assert queue.append(Delivery(reading(1), 1))
    assert queue.popleft().message.topic == "sensors/n1/temperature"
    assert queue.bytes == 0


def test_remove_expired_keeps_the_order_of_the_rest() -> None:
    queue = DeliveryQueue()
    for number, expiry in enumerate([None, 5, 7, None, 5]):
        queue.append(Delivery(reading(number, expiry), 1))
    assert queue.remove_expired(4.9) == []
    assert len(queue.remove_expired(5.0)) == 2
    assert queue.remove_expired(6.9) == []
    assert [queue.popleft().message.topic[9] for _ in range(3)] == ["0", "2", "3"]
    assert queue.bytes == 0


def test_remove_qos_0() -> None:
    queue = DeliveryQueue()
    for number, qos in enumerate([0, 1, 2, 0]):
        queue.append(Delivery(reading(number), qos))
    assert queue.remove_qos_0() == 2
    assert [queue.popleft().qos for _ in range(2)] == [1, 2]
    assert queue.remove_qos_0() == 0


def test_clear() -> None:
    memory = QueueMemory()
    queue = DeliveryQueue(memory=memory)
    for number in range(3):
        queue.append(Delivery(reading(number), 1))
    queue.clear()
    assert (len(queue), queue.bytes, memory.bytes) == (0, 0, 0)


def test_queues_that_share_a_full_memory_refuse_the_newest() -> None:
    memory = QueueMemory(maximum_bytes=1)
    first, second = DeliveryQueue(memory=memory), DeliveryQueue(memory=memory)
    assert first.append(Delivery(reading(1), 1))
    assert second.full
    assert not second.append(Delivery(reading(2), 1))
    first.popleft()
    assert second.append(Delivery(reading(2), 1))


def test_a_delivery_takes_about_what_it_is_counted_for() -> None:
    message = reading(1)
    queue = DeliveryQueue()
    tracemalloc.start()
    for _ in range(1_000):
        queue.append(Delivery(message, 1))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.5 < taken / (1_000 * DELIVERY_OVERHEAD) <= 1.0


class QueueAgainstDeque(RuleBasedStateMachine):
    """The queue and an unbounded deque of what it accepted say the same after any history."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = 1_500
        self.memory = QueueMemory()
        self.queue = DeliveryQueue(4, self.limit, self.memory)
        self.accepted: deque[Delivery] = deque()

    @rule(size=st.integers(0, 900), qos=st.integers(0, 2), expiry=st.none() | st.integers(0, 9))
    def append(self, size: int, qos: int, expiry: int | None) -> None:
        delivery = Delivery(Message("a", b"x" * size, qos, message_expiry=expiry), qos)
        has_room = len(self.accepted) < 4 and self.size() < self.limit
        assert self.queue.full != has_room
        assert self.queue.append(delivery) == has_room
        if has_room:
            self.accepted.append(delivery)

    @precondition(lambda self: bool(self.accepted))
    @rule()
    def popleft(self) -> None:
        assert self.queue.first() is self.accepted[0]
        assert self.queue.popleft() is self.accepted.popleft()

    @rule(now=st.integers(0, 10))
    def remove_expired(self, now: int) -> None:
        live = [
            delivery
            for delivery in self.accepted
            if delivery.message.message_expiry is None or now < delivery.message.message_expiry
        ]
        assert len(self.queue.remove_expired(now)) == len(self.accepted) - len(live)
        self.accepted = deque(live)

    @rule()
    def remove_qos_0(self) -> None:
        kept = [delivery for delivery in self.accepted if delivery.qos]
        assert self.queue.remove_qos_0() == len(self.accepted) - len(kept)
        self.accepted = deque(kept)

    @invariant()
    def accounts(self) -> None:
        assert len(self.queue) == len(self.accepted)
        assert self.queue.bytes == self.memory.bytes == self.size()
        assert self.memory.messages == self.memory.deliveries == len(self.accepted)

    def size(self) -> int:
        return sum(DELIVERY_OVERHEAD + message_size(held.message) for held in self.accepted)


TestQueueAgainstDeque = QueueAgainstDeque.TestCase
