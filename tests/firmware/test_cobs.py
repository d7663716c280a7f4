"""Stuffing on the node: known pairs, and nothing accepted that it never gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node import cobs

PAIRS = [("", "01"), ("00", "0101"), ("0000", "010101"), ("11220033", "0311220233")]


@pytest.mark.parametrize(("data", "stuffed"), PAIRS)
def test_known_pairs(data: str, stuffed: str) -> None:
    assert cobs.encode(bytes.fromhex(data)).hex() == stuffed
    assert cobs.decode(bytes.fromhex(stuffed)).hex() == data


@given(st.binary(max_size=cobs.DATA_MAX))
def test_what_was_stuffed_comes_back(data: bytes) -> None:
    stuffed = cobs.encode(data)
    assert 0 not in stuffed
    assert cobs.decode(stuffed) == data


@pytest.mark.parametrize("stuffed", ["00", "02", "0311", "010511"])
def test_a_code_that_points_outside_is_refused(stuffed: str) -> None:
    with pytest.raises(ValueError, match="points outside"):
        cobs.decode(bytes.fromhex(stuffed))


def test_more_than_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="254 bytes: at most 253"):
        cobs.encode(b"x" * 254)
