"""Stuffing on the node: what it never gives is refused; tests/contract has what it gives."""

import pytest
from node import cobs


@pytest.mark.parametrize("stuffed", ["00", "02", "0311", "010511"])
def test_a_code_that_points_outside_is_refused(stuffed: str) -> None:
    with pytest.raises(ValueError, match="points outside"):
        cobs.decode(bytes.fromhex(stuffed))


def test_more_than_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="254 bytes: at most 253"):
        cobs.encode(b"x" * 254)
