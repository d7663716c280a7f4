from gateway.session.incoming import IDENTIFIER_OVERHEAD, Incoming
from gateway.session.queue_memory import QueueMemory


def test_it_knows_of_which_connection_an_identifier_is() -> None:
    incoming = Incoming(10, QueueMemory())
    assert [incoming.add(5), incoming.add(5), incoming.add(6)] == [True, False, True]
    incoming.begin()
    assert (5 in incoming, 7 in incoming, list(incoming)) == (True, False, [5, 6])
    assert [incoming.add(5), incoming.add(5)] == [True, False]
    assert [incoming.remove(each) for each in (5, 6, 7)] == [True, False, None]
    assert not len(incoming)


def test_it_is_full_by_number_or_by_memory() -> None:
    memory = QueueMemory(3 * IDENTIFIER_OVERHEAD)
    incoming, other = Incoming(2, memory), Incoming(2, memory)
    full = [incoming.full]
    for each in (1, 2):
        incoming.add(each)
        full.append(incoming.full)
    full.append(other.full)
    other.add(1)
    assert [*full, other.full] == [False, False, True, False, True]
    incoming.clear()
    assert memory.bytes == IDENTIFIER_OVERHEAD
    other.remove(1)
    other.remove(1)
    assert memory.bytes == 0
