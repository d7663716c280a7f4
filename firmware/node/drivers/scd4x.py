"""SCD40 and SCD41: carbon dioxide, temperature and humidity over I2C, every five seconds."""

import time

from node import const
from node.crc8 import crc8

from . import open_bus

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from machine import I2C

_ADDRESS = const(0x62)
START = b"\x21\xb1"
"""Measure every five seconds (datasheet, 3.6.1)."""

READY = b"\xe4\xb8"
MEASUREMENT = b"\xec\x05"
_WORDS = const(3)
_TRIES = const(12)
_BETWEEN_MS = const(500)
_COMMAND_MS = const(1)


class Scd4x:
    """Reads the sensor; the first reading waits for its first measurement."""

    def __init__(self, bus: "I2C") -> None:
        self._bus = bus
        self._started = False

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return all three; OSError when nothing answers, nothing is new or a check fails."""
        if not self._started:
            self._bus.writeto(_ADDRESS, START)
            self._started = True
            tries = _TRIES
        else:
            tries = 1
        while not self._ask(READY, 1)[0] & 0x07FF:
            tries -= 1
            if tries <= 0:
                raise OSError("SCD4x: nothing was measured since the last reading")
            time.sleep(_BETWEEN_MS / 1000)
        dioxide, temperature, humidity = self._ask(MEASUREMENT, _WORDS)
        return [
            ("carbon_dioxide", (dioxide, 0), "ppm"),
            ("temperature", (17500 * temperature // 65536 - 4500, -2), "°C"),
            ("humidity", (10000 * humidity // 65536, -2), "%"),
        ]

    def _ask(self, command: bytes, words: int) -> "list[int]":
        self._bus.writeto(_ADDRESS, command)
        time.sleep(_COMMAND_MS / 1000)
        data = self._bus.readfrom(_ADDRESS, 3 * words)
        found = []
        for place in range(0, 3 * words, 3):
            if crc8(data[place : place + 2]) != data[place + 2]:
                raise OSError("SCD4x: a check failed")
            found.append(data[place] << 8 | data[place + 1])
        return found


def make(settings: "dict[str, int]") -> Scd4x:
    """Return the sensor on the bus of the settings."""
    return Scd4x(open_bus(settings))
