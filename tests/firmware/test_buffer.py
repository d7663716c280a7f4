"""The window, the re-send timer, and which sample goes when the buffer is full."""

from hypothesis import given
from hypothesis import strategies as st
from node.buffer import RESEND_MS, WAITING_MAX, WINDOW, Buffer, Sample


def filled(count: int) -> Buffer:
    buffer = Buffer()
    for clock in range(count):
        buffer.add(Sample(clock, None, [b"x"]))
    return buffer


def sequences(samples: list[Sample]) -> list[int]:
    return [sample.sequence for sample in samples]


def test_numbers_begin_at_one_and_the_window_ends_the_sending() -> None:
    buffer = filled(WINDOW + 3)
    assert sequences(buffer.due(0)) == list(range(1, WINDOW + 1))
    assert buffer.due(1) == []


def test_an_acknowledgement_of_the_oldest_makes_room() -> None:
    buffer = filled(WINDOW + 3)
    buffer.due(0)
    buffer.acknowledge(1, refused=False)
    assert sequences(buffer.due(1)) == [WINDOW + 1]


def test_an_acknowledgement_of_a_later_one_does_not() -> None:
    buffer = filled(WINDOW + 3)
    buffer.due(0)
    buffer.acknowledge(2, refused=False)
    assert buffer.due(1) == []
    buffer.acknowledge(1, refused=False)
    assert sequences(buffer.due(1)) == [WINDOW + 1, WINDOW + 2]


def test_what_is_not_acknowledged_is_sent_again_when_its_time_is_over() -> None:
    buffer = filled(2)
    buffer.due(0)
    buffer.acknowledge(1, refused=False)
    assert buffer.due(RESEND_MS - 1) == []
    assert sequences(buffer.due(RESEND_MS)) == [2]
    assert buffer.due(RESEND_MS + 1) == []
    assert sequences(buffer.due(2 * RESEND_MS)) == [2]


def test_when_something_is_due_again() -> None:
    buffer = filled(1)
    assert buffer.next_due() is None
    buffer.due(10)
    assert buffer.next_due() == 10 + RESEND_MS
    buffer.acknowledge(1, refused=False)
    assert buffer.next_due() is None


def test_a_full_buffer_drops_the_oldest_that_was_never_sent() -> None:
    buffer = filled(WINDOW)
    buffer.due(0)
    for clock in range(100, 100 + WAITING_MAX + 5):
        buffer.add(Sample(clock, None, [b"x"]))
    assert buffer.dropped == 5
    for sequence in range(1, WINDOW + 1):
        buffer.acknowledge(sequence, refused=False)
    later = buffer.due(1)
    assert later[0].clock == 105
    assert sequences(later)[0] == WINDOW + 1, "numbers have no gap"


def test_refusals_are_counted_and_not_sent_again() -> None:
    buffer = filled(1)
    buffer.due(0)
    buffer.acknowledge(1, refused=True)
    buffer.acknowledge(1, refused=True)
    assert buffer.refused == 1
    assert buffer.due(RESEND_MS) == []


def test_an_acknowledgement_of_what_was_never_sent_means_nothing() -> None:
    buffer = filled(1)
    buffer.acknowledge(1, refused=False)
    assert sequences(buffer.due(0)) == [1]


@given(st.lists(st.sampled_from(["sample", "acknowledge", "time"]), max_size=200), st.randoms())
def test_nothing_is_lost_but_what_is_counted(steps: list[str], random: st.DataObject) -> None:
    buffer, now, made, acknowledged = Buffer(), 0, 0, set[int]()
    outstanding: set[int] = set()
    for step in steps:
        if step == "sample":
            buffer.add(Sample(now, None, [b"x"]))
            made += 1
        elif step == "acknowledge" and outstanding:
            sequence = random.choice(sorted(outstanding))  # type: ignore[attr-defined]  # a Random
            buffer.acknowledge(sequence, refused=False)
            outstanding.remove(sequence)
            acknowledged.add(sequence)
        else:
            now += RESEND_MS // 2
        sent = sequences(buffer.due(now))
        assert not acknowledged & set(sent)
        outstanding.update(sent)
        assert not outstanding or max(outstanding) - min(outstanding) < WINDOW
    assert made == len(acknowledged) + len(outstanding) + len(buffer._waiting) + buffer.dropped
