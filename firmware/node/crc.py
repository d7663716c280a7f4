"""The CRC-32 of a frame, in C where the board's `binascii` has it."""

import binascii

POLYNOMIAL = 0xEDB88320
"""Of IEEE 802.3, the lowest bit first."""


def bitwise_crc32(data: bytes) -> int:
    """Return the CRC-32 of `data`, worked out bit by bit: for boards without the C function."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


_crc32 = getattr(binascii, "crc32", bitwise_crc32)


def crc32(data: bytes) -> int:
    """Return the CRC-32 of `data`, 0 to 2**32 - 1."""
    return int(_crc32(data))
