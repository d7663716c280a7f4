"""What answers a question on a serial line, and when a device may be asked for something else."""

from hypothesis import given
from hypothesis import strategies as st
from pymodbus.framer import FramerRTU

from gateway.bridges.modbus.answer_filter import AnswerFilter, fits
from gateway.bridges.modbus.register import Register
from gateway.bridges.modbus.requests import LATE_MAX, plan
from tests.bridges.modbus.slaves import framed
from tests.support.table import table

READ = framed(1, b"\x03\x00\x0a\x00\x02")
COILS = framed(1, b"\x01\x00\x0a\x00\x09")
WRITE = framed(1, b"\x06\x00\x0a\x00\x05")

ANSWERS = [
    (READ, b"\x03\x04\0\1\0\2", True),
    (READ, b"\x83\x02", True),
    (READ, b"\x04\x04\0\1\0\2", False),
    (READ, b"\x03\x02\0\1", False),
    (READ, b"\x84\x02", False),
    (COILS, b"\x01\x02\xff\x01", True),
    (COILS, b"\x01\x01\xff", False),
    (WRITE, b"\x06\x00\x0a\x00\x05", True),
    (WRITE, b"\x06\x00\x0b\x00\x05", False),
    (WRITE, b"\x03\x02\0\1", False),
]


@table(("question", "answer", "fit"), ANSWERS)
def test_what_fits(question: bytes, answer: bytes, fit: bool) -> None:
    assert fits(question, framed(1, answer)) is fit
    assert not fits(question, framed(2, answer))
    assert not fits(b"", framed(1, answer))


def filtering() -> tuple[AnswerFilter, list[int]]:
    late: list[int] = []
    return AnswerFilter(FramerRTU.compute_CRC, late.append), late


def test_what_comes_unasked_is_late() -> None:
    answers, late = filtering()
    frame = framed(7, b"\x03\x02\0\1")
    assert answers(False, frame) == b""
    assert answers(True, READ) == READ
    assert answers(False, frame[:4]) == b""
    assert answers(False, frame) == b""
    answers.expect_nothing()
    assert answers(False, framed(1, b"\x03\x04\0\1\0\2")) == b""
    assert late == [7, 7, 1]


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8))
def test_no_bytes_trip_it_over(pieces: list[bytes]) -> None:
    answers, _ = filtering()
    answers(True, READ)
    data = b""
    for piece in pieces:
        data = (data + piece)[-100:]  # as the client throws away what is too much
        assert answers(False, data) in data


def test_after_a_question_without_an_answer_the_same_is_asked_until_no_other_can_come() -> None:
    (device,) = plan([Register(10, "a"), Register(20, "b")])
    first, second = device.requests
    first.due = 10.0
    device.silent(0.5)
    device.expect_late(first, 0.0)
    assert device.next(2.5) is first
    device.silent(3.0)
    device.expect_late(first, 2.5)
    assert device.next(5.0) is first
    device.answered(7.5)
    assert device.next(7.5) is second
    assert device.due(7.5) == 7.5 + LATE_MAX  # its answer may have taken 7.5 s
    device.late()
    assert device.due(8.0) == 7.5 + LATE_MAX
    device.late()
    assert device.due(8.0) == 0.0  # both have come


def test_a_device_that_was_away_for_long_owes_nothing() -> None:
    (device,) = plan([Register(10, "a"), Register(20, "b")])
    first, second = device.requests
    device.silent(0.5)
    device.expect_late(first, 0.0)
    first.due = 99.0
    assert device.next(LATE_MAX) is second
    device.answered(LATE_MAX + 1)
    assert device.late_expected == 0
    device.expect_late(None, 50.0)
    device.expect_late(None, 50.0 + LATE_MAX + 1)
    assert (device.late_expected, device.unanswered) == (1, None)
