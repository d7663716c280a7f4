"""Drivers, each a file with a function `make(settings)`; and the I2C bus that some share."""

import machine

from node import const

_FREQUENCY = const(100000)


def open_bus(settings: "dict[str, int]") -> machine.I2C:
    """Return the bus with these pins."""
    return machine.I2C(
        settings.get("i2c", 0),
        scl=machine.Pin(settings["scl"]),
        sda=machine.Pin(settings["sda"]),
        freq=_FREQUENCY,
    )
