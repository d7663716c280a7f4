"""The node's interpreter: what it refuses, and what it remembers."""

import pytest
from node.filter import _PROGRAM_MAX, _STACK_MAX, Filter

from tests.support.table import table

PASS = b"\x10\x04"
AND = b"\x31"


@table(
    ("program", "reason"),
    [
        (b"", "a program of 0 bytes: 2 to 200"),
        (b"\x01", "a program of 1 bytes: 2 to 200"),
        (b"\x01" * (_PROGRAM_MAX + 1), "a program of 201 bytes: 2 to 200"),
        (b"\x02" + PASS, "program version 2: 1 is known"),
        (b"\x01\x12", "opcode 0x12 is not known"),
        (b"\x01\x10", "the program ends at byte 2"),
        (b"\x01\x10\x08" + bytes(8), "operand 0x08 is not known"),
        (b"\x01\x10\x05" + bytes(7), "the program ends at byte 10"),
        (b"\x01\x10\x07\x02a", "the program ends at byte 5"),
        (b"\x01\x10\x07\x01\xff", "byte 3: text that is not UTF-8"),
        (b"\x01\x30", "byte 2: a stack of -1 values"),
        (b"\x01" + PASS + AND, "byte 4: a stack of -1 values"),
        (b"\x01" + PASS * 2, "a program that leaves 2 values"),
        (b"\x01" + PASS * (_STACK_MAX + 1), "byte 19: a stack of 8 values"),
    ],
)
def test_a_program_that_is_not_whole(program: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match="^" + reason.replace("(", "\\(") + "$"):
        Filter(program)


def test_the_stack_has_room_for_its_bound() -> None:
    assert Filter(b"\x01" + PASS * _STACK_MAX + AND * (_STACK_MAX - 1)).passes(1, None, 0)


def test_only_what_passed_is_remembered() -> None:
    deadband = Filter(b"\x01\x40\x05\x02" + bytes(7))  # DEADBAND of 2
    assert [deadband.passes(value, None, 0) for value in (1, 2, 3, 4, 5)] == [
        *(True, False, True),
        *(False, True),
    ]


def test_evaluation_remembers_nothing() -> None:
    every = Filter(b"\x01\x41\x05\xe8\x03" + bytes(6))  # EVERY of 1,000 ms
    assert every.evaluate(1, None, 5_000) is True
    assert [every.passes(1, None, now) for now in (5_000, 5_999, 6_000)] == [True, False, True]


def test_decimals_are_whole_or_rounded_as_the_gateway_does() -> None:
    equal = Filter(b"\x01\x20\x00\x06" + bytes.fromhex("1f85eb51b81e3540"))  # value = 21.12
    assert equal.passes((2112, -2), None, 0)
    assert equal.passes(21.12, None, 0)
    assert not equal.passes((211, -1), None, 0)
