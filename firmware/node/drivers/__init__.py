"""Drivers, each a file with a function `make(settings)`; and what some of them share."""

import machine

from node import const

_FREQUENCY = const(100000)
_POLYNOMIAL = const(0x31)
_MANTISSA_MAX = const(0x7FFFFFFF)


def open_bus(settings: "dict[str, int]") -> machine.I2C:
    """Return the bus with these pins."""
    return machine.I2C(
        settings.get("i2c", 0),
        scl=machine.Pin(settings["scl"]),
        sda=machine.Pin(settings["sda"]),
        freq=_FREQUENCY,
    )


def crc8(data: bytes) -> int:
    """Return the check that Sensirion's sensors send behind each word (SHT3x datasheet, 4.12)."""
    crc = 0xFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ _POLYNOMIAL if crc & 0x80 else crc << 1) & 0xFF
    return crc


def decimal(value: float, digits: int) -> "tuple[int, int]":
    """Return a value as a decimal with as many digits behind the point as fit a frame."""
    mantissa = round(value * 10**digits)
    while abs(mantissa) > _MANTISSA_MAX:
        digits -= 1
        mantissa = round(value * 10**digits) if digits >= 0 else mantissa // 10
    return mantissa, -digits
