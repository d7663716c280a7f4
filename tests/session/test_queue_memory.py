from gateway.mqtt.message_size import message_size
from gateway.routing.where.message import Message
from gateway.session.queue_memory import DELIVERY_OVERHEAD, QueueMemory


def test_a_message_is_counted_once_however_many_hold_it() -> None:
    memory = QueueMemory()
    shared, other = Message("a", b"x" * 1_000), Message("b")
    for message in (shared, shared, other, shared):
        memory.add(message)
    assert (memory.messages, memory.deliveries) == (2, 4)
    own = message_size(shared) + message_size(other)
    assert memory.bytes == own + 4 * DELIVERY_OVERHEAD
    memory.remove(shared)
    memory.remove(shared)
    assert memory.bytes == own + 2 * DELIVERY_OVERHEAD
    memory.remove(shared)
    memory.remove(other)
    assert (memory.messages, memory.deliveries, memory.bytes) == (0, 0, 0)


def test_many_count_as_each_would() -> None:
    memory, one_by_one = QueueMemory(), QueueMemory()
    messages = [Message("a", b"x" * 1_000), Message("b")]
    again = [Message("a", b"x" * 1_000), Message("b")]
    alone = 2 * message_size(messages[0]) + message_size(messages[1]) + 3 * DELIVERY_OVERHEAD
    assert memory.add_all([messages[0], messages[1], messages[0]]) == alone
    for number in (0, 1, 0):
        one_by_one.add(again[number])
    assert (memory.messages, memory.deliveries) == (2, 3)
    assert memory.bytes == one_by_one.bytes
    assert memory.remove_all([messages[0], messages[1], messages[0]]) == alone
    assert (memory.messages, memory.deliveries, memory.bytes) == (0, 0, 0)


def test_it_is_full_once_the_bound_is_reached() -> None:
    message = Message("a")
    memory = QueueMemory(maximum_bytes=2 * DELIVERY_OVERHEAD + message_size(message))
    full = [memory.full]
    for _ in range(2):
        memory.add(message)
        full.append(memory.full)
    memory.remove(message)
    assert [*full, memory.full] == [False, False, True, False]
