"""Stuffing: known pairs, everything back as it was, and nothing accepted that it never gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.serial.serial_frames import DATA_MAX, StuffingError, stuff, unstuff

PAIRS = [
    ("", "01"),
    ("00", "01 01"),
    ("0000", "01 01 01"),
    ("11220033", "03 11 22 02 33"),
    ("11223344", "05 11 22 33 44"),
    ("11000000", "02 11 01 01 01"),
]


@pytest.mark.parametrize(("data", "stuffed"), PAIRS)
def test_known_pairs(data: str, stuffed: str) -> None:
    assert stuff(bytes.fromhex(data)).hex() == bytes.fromhex(stuffed).hex()
    assert unstuff(bytes.fromhex(stuffed)).hex() == data


@given(st.binary(max_size=DATA_MAX))
def test_what_was_stuffed_comes_back(data: bytes) -> None:
    stuffed = stuff(data)
    assert 0 not in stuffed
    assert len(stuffed) == len(data) + 1
    assert unstuff(stuffed) == data


@given(st.binary(max_size=260))
def test_only_what_stuffing_gives_is_accepted(stuffed: bytes) -> None:
    try:
        data = unstuff(stuffed)
    except StuffingError:
        return
    if stuffed and 0 not in stuffed and len(data) <= DATA_MAX:
        assert stuff(data) == stuffed


@pytest.mark.parametrize("stuffed", ["00", "02", "03 11", "01 05 11", "ff 01"])
def test_a_code_that_points_outside_is_refused(stuffed: str) -> None:
    with pytest.raises(StuffingError, match="points outside"):
        unstuff(bytes.fromhex(stuffed))


def test_more_than_a_block_is_refused() -> None:
    with pytest.raises(StuffingError, match="254 bytes: at most 253"):
        stuff(b"x" * 254)
