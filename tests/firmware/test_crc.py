"""The CRC-32 of the board's C function and the one in Python are the same."""

import zlib

from hypothesis import given
from hypothesis import strategies as st
from node.crc import bitwise_crc32, crc32


def test_the_check_value_of_the_catalogue() -> None:
    assert bitwise_crc32(b"123456789") == crc32(b"123456789") == 0xCBF43926


@given(st.binary(max_size=300))
def test_both_agree_with_zlib(data: bytes) -> None:
    assert bitwise_crc32(data) == crc32(data) == zlib.crc32(data)
