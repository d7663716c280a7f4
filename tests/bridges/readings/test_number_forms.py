"""Markers of no value, and the shortest text of a 32-bit float."""

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.number_forms import USUAL, invalid, is_marker, shortest
from tests.support.table import table

MARKERS: list[tuple[tuple[float, ...] | str, str, str, bool]] = [
    (USUAL, "h", "8000", True),
    (USUAL, "h", "ffff", False),
    (USUAL, "H", "ffff", True),
    (USUAL, "H", "8000", False),
    (USUAL, "i", "80000000", True),
    (USUAL, "i", "ffffffff", False),
    (USUAL, "I", "ffffffff", True),
    (USUAL, "q", "8000000000000000", True),
    (USUAL, "Q", "ffffffffffffffff", True),
    (USUAL, "b", "80", True),
    (USUAL, "f", "7fc00000", True),
    (USUAL, "f", "00000000", False),
    (USUAL, "d", "7ff8000000000000", True),
    ((0x80000000,), "i", "80000000", True),
    ((-(2**31),), "i", "80000000", True),
    ((0xFFFFFFFF, 5), "I", "00000005", True),
    ((0xFFFFFFFF,), "I", "00000006", False),
    ((-9999.0,), "f", "c61c3c00", True),
    ((-9999.0,), "f", "c61c3c", False),
]


@table(("markers", "layout", "packed", "found"), MARKERS)
def test_markers(markers: tuple[float, ...] | str, layout: str, packed: str, found: bool) -> None:
    assert is_marker(markers, layout, bytes.fromhex(packed)) is found


@table("value", [230.2, 0.1, 21.5, -40.0, 3.4028235e38, 1e-45, 16_777_217.0])
def test_a_float_of_32_bits_has_its_shortest_text(value: float) -> None:
    (wide,) = struct.unpack(">f", struct.pack(">f", value))
    assert len(repr(shortest(wide))) <= len(repr(value))


@given(st.floats(width=32))
def test_it_stays_the_same_float(value: float) -> None:
    assert struct.pack(">f", shortest(value)) == struct.pack(">f", value)
    assert not math.isfinite(value) or digits(shortest(value)) <= digits(value)


def digits(value: float) -> int:
    """Return how many digits a number needs, zeros at either end left out."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def test_fewer_digits_may_be_a_longer_text() -> None:
    assert shortest(999_999_995_904.0) == 1e12


def test_what_marks_no_value_is_a_list_or_usual() -> None:
    assert invalid([1, -2.5]) == (1, -2.5)
    assert invalid("usual") == USUAL
    for value in ("all", 5, ["5"], [True]):
        with pytest.raises(ValueError, match="a list of numbers"):
            invalid(value)
