"""What answers a question on a serial line, and when a device may be asked for something else."""

from hypothesis import given
from hypothesis import strategies as st
from pymodbus.framer import FramerRTU

from gateway.bridges.modbus.answer_filter import AnswerFilter, RtuFraming, TcpFraming, fits
from gateway.bridges.modbus.register import Register
from gateway.bridges.modbus.requests import LATE_MAX, LISTEN_EVERY, QUICK, REPEAT_MAX, plan
from tests.bridges.modbus.slaves import framed
from tests.support.table import table

READ = b"\x01\x03\x00\x0a\x00\x02"
COILS = b"\x01\x01\x00\x0a\x00\x09"
WRITE = b"\x01\x06\x00\x0a\x00\x05"
WRITES = b"\x01\x10\x00\x0a\x00\x02\x04\0\1\0\2"

ANSWERS = [
    (READ, b"\x03\x04\0\1\0\2", True),
    (READ, b"\x83\x02", True),
    (READ, b"\x04\x04\0\1\0\2", False),
    (READ, b"\x03\x02\0\1", False),
    (READ, b"\x03\x04\0\1", False),
    (READ, b"\x03\x06\0\1\0\2\0\3", False),
    (READ, b"\x84\x02", False),
    (READ, b"\x2b\x04\0\1\0\2", False),
    (COILS, b"\x01\x02\xff\x01", True),
    (COILS, b"\x01\x01\xff", False),
    (WRITE, b"\x06\x00\x0a\x00\x05", True),
    (WRITE, b"\x06\x00\x0b\x00\x05", False),
    (WRITE, b"\x03\x02\0\1", False),
    (WRITES, b"\x10\x00\x0a\x00\x02", True),
    (WRITES, b"\x10\x00\x0a\x00\x03", False),
]


@table(("question", "answer", "fit"), ANSWERS)
def test_what_fits(question: bytes, answer: bytes, fit: bool) -> None:
    assert fits(question, b"\x01" + answer) is fit
    assert not fits(question, b"\x02" + answer)
    assert fits(b"\0" + question[1:], b"\x02" + answer) is fit  # whichever device is there


def test_a_numbered_answer_may_be_shorter() -> None:
    assert fits(READ, b"\x01\x03\x02\0\1", shorter=True)
    assert not fits(READ, b"\x01\x03\x06\0\1\0\2\0\3", shorter=True)


def filtering(*, tcp: bool = False) -> tuple[AnswerFilter, list[int]]:
    late: list[int] = []
    framing = TcpFraming() if tcp else RtuFraming(FramerRTU.compute_CRC)
    return AnswerFilter(framing, late.append), late


def on_tcp(number: int, body: bytes, protocol: int = 0) -> bytes:
    return b"".join(each.to_bytes(2, "big") for each in (number, protocol, len(body))) + body


def test_what_comes_unasked_is_late() -> None:
    answers, late = filtering()
    read = framed(1, READ[1:])
    frame = framed(7, b"\x03\x02\0\1")
    assert answers(False, frame) == b""
    assert answers(True, read) == read
    assert answers(False, frame[:4]) == b""
    assert answers(False, frame) == b""
    answers.expect_nothing()
    assert answers(False, framed(1, b"\x03\x04\0\1\0\2")) == b""
    assert late == [7, 7, 1]
    assert answers.numbered is False


ANSWER = b"\x01\x03\x04\0\1\0\2"

OTHERS: list[tuple[bytes, list[int]]] = [
    (on_tcp(4, ANSWER), [1]),
    (on_tcp(5, b"\x09" + ANSWER[1:]), [9]),
    (on_tcp(5, b"\x01\x04\x04\0\1\0\2"), [1]),
    (on_tcp(5, b"\x01\x84\x02"), [1]),
    (on_tcp(5, b"\x01\x03\x08\0\1\0\2"), [1]),
    (on_tcp(5, ANSWER, protocol=1), []),
    (b"\xff\xff\xff", []),
]


@table(("other", "late"), OTHERS)
def test_on_tcp_only_the_answer_with_the_number_passes(other: bytes, late: list[int]) -> None:
    answers, noted = filtering(tcp=True)
    answer = on_tcp(5, ANSWER)
    answers(True, on_tcp(5, READ))
    assert answers(False, other) == b""
    assert answers(False, other + answer[:9]) == b""
    assert answers(False, other + answer) == answer
    assert noted == late


def test_a_device_that_numbers_no_answer_is_as_on_a_line() -> None:
    answers, late = filtering(tcp=True)
    answers(True, on_tcp(5, READ))
    assert answers(False, on_tcp(0, ANSWER)) == on_tcp(0, ANSWER)
    assert answers.numbered is False
    answers(True, on_tcp(6, READ))
    assert answers(False, on_tcp(0, b"\x01\x03\x02\0\1")) == b""
    assert late == [1]
    answers, late = filtering(tcp=True)
    for number in (5, 6):
        answers(True, on_tcp(number, READ))
        assert answers(False, on_tcp(5, ANSWER)) == (on_tcp(5, ANSWER) if number == 5 else b"")
    assert answers(False, on_tcp(5, ANSWER) + on_tcp(0, ANSWER)) == b""
    assert answers.numbered is True


@given(st.booleans(), st.lists(st.binary(min_size=1, max_size=40), max_size=8))
def test_no_bytes_trip_it_over(tcp: bool, pieces: list[bytes]) -> None:
    answers, _ = filtering(tcp=tcp)
    answers(True, on_tcp(5, READ) if tcp else framed(1, READ[1:]))
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


def test_an_early_answer_is_held_back_until_another_one_follows() -> None:
    early, late = [True, True, False], list[int]()
    framing = RtuFraming(FramerRTU.compute_CRC)
    answers = AnswerFilter(framing, late.append, lambda: early.pop(0))
    first, second = framed(1, b"\x03\x02\0\1"), framed(1, b"\x03\x02\0\2")
    question = framed(1, b"\x03\x00\x0a\x00\x01")
    answers(True, question)
    assert (answers(False, first), answers.held) == (b"", True)
    answers(True, question)
    assert (answers(False, first), answers.held) == (b"", True)
    assert (answers(False, first + second), late) == (second, [1])
    answers(True, written := framed(1, WRITE[1:]))
    assert answers(False, written) == written  # it names what was written


def test_a_device_that_repeats_an_answer_is_left_alone_after_each() -> None:
    (device,) = plan([Register(10, "a")])
    device.answered(0.0, listen=0.5)
    assert device.absent_until == 0.5
    assert not device.repeats(REPEAT_MAX + 0.1)
    assert device.repeats(0.25)
    device.answered(1.0, listen=0.5)
    assert device.absent_until == 1.5
    assert not device.repeats(1.125)
    assert device.pause == 0.45
    device.answered(LISTEN_EVERY, listen=0.5)
    assert device.absent_until == LISTEN_EVERY + 0.5
    device.quickest = 1.0
    assert device.earliest == 0.8
    device.quickest = QUICK
    assert device.earliest == 0.0
