"""The check that Sensirion's sensors send behind each word."""

from . import const

_POLYNOMIAL = const(0x31)


def crc8(data: bytes) -> int:
    """Return the check of two bytes (SHT3x datasheet, 4.12)."""
    crc = 0xFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ _POLYNOMIAL if crc & 0x80 else crc << 1) & 0xFF
    return crc
