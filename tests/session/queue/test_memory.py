import pytest

from gateway.session.queue.memory import AT_ONCE, QueueMemory
from gateway.session.span import SPAN_OVERHEAD, Span
from tests.support.broker.publications import publish


def test_a_publication_is_counted_once_however_many_hold_it() -> None:
    memory = QueueMemory()
    shared, other = publish([b"x" * 1_000, b"y", b"z"]), publish([b""])
    whole, one = Span(shared, 0, 3, 1), Span(shared, 1, 1, 1)
    spans = [whole, one, Span(other, 0, 1, 1), whole]
    for span in spans:
        memory.add(span)
    assert (memory.messages, memory.deliveries) == (4, 8)
    own = shared.size(0, 3) + other.size(0, 1)
    assert memory.bytes == own + 8 * SPAN_OVERHEAD
    for span in (whole, whole):
        memory.remove(span)
    assert (memory.messages, memory.bytes) == (4, own + 2 * SPAN_OVERHEAD)
    memory.remove(one)
    assert (memory.messages, memory.bytes) == (1, other.size(0, 1) + SPAN_OVERHEAD)
    memory.remove(spans[2])
    assert (memory.messages, memory.deliveries, memory.bytes) == (0, 0, 0)


def test_it_is_full_once_the_bound_is_reached() -> None:
    publication = publish([b""])
    span = Span(publication, 0, 1, 1)
    memory = QueueMemory(maximum_bytes=2 * SPAN_OVERHEAD + publication.size(0, 1))
    full = [memory.full]
    for _ in range(2):
        memory.add(span)
        full.append(memory.full)
    memory.remove(span)
    assert [*full, memory.full] == [False, False, True, False]


@pytest.mark.uncovered
def test_what_is_given_up_by_the_thousand_counts_until_its_turn_comes() -> None:
    memory, reported = QueueMemory(), []
    memory.on_released = lambda: reported.append(memory.messages)
    for count, left in ((1, 0), (AT_ONCE, 0), (2 * AT_ONCE + 5, AT_ONCE + 5)):
        spans = [Span(publish([b"x"]), 0, 1, 1) for _ in range(count)]
        for span in spans:
            memory.add(span)
        memory.release(spans)
        assert memory.messages == left
    assert reported == [AT_ONCE + 5]
    assert memory.forget_some(AT_ONCE)
    assert not memory.forget_some(AT_ONCE)
    assert (memory.messages, memory.deliveries, memory.bytes) == (0, 0, 0)
