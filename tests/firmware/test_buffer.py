"""The window, the re-send timer, and which sample goes when the buffer is full."""

from hypothesis import given
from hypothesis import strategies as st
from node.buffer import RESEND_MS, WINDOW, Buffer, Sample
from node.frames import encode_reading
from node.ring import SIZE_MIN
from node.simulated_sensor import SimulatedSensor


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
    buffer = Buffer(waiting_bytes=SIZE_MIN)
    for clock in range(1000):
        buffer.add(Sample(clock, None, [b"x"]))
    kept = 1000 - buffer.dropped
    assert 0 < kept < 1000
    first = buffer.due(1)[0]
    assert (first.clock, first.sequence) == (buffer.dropped, 1), "numbers have no gap"
    assert len(buffer._waiting) == kept - WINDOW


def test_an_hour_without_a_gateway_fits() -> None:
    buffer, sensor, expected = Buffer(), SimulatedSensor(), []
    for second in range(3600):
        readings = [encode_reading(*reading) for reading in sensor.read()]
        clock = 1000 * second
        wall = 1763740000000 + clock if second % 600 else None
        expected.append((clock, wall, readings))
        buffer.add(Sample(clock, wall, readings))
    assert buffer.dropped == 0
    got = []
    while samples := buffer.due(0):
        for sample in samples:
            got.append((sample.clock, sample.wall, sample.readings))
            buffer.acknowledge(sample.sequence, refused=False)
    assert got == expected


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
