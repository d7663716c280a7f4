"""A DHT22 (AM2302): temperature and humidity over one wire, at most every two seconds."""

import time

import dht
import machine

from node import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

_time: "Any" = time  # CPython's has no ticks

_BETWEEN_MS = const(2000)
"""Milliseconds that it needs between two measurements; asked earlier it says the last one again."""


class Dht22:
    """Reads with MicroPython's own driver."""

    def __init__(self, pin: int) -> None:
        self._sensor = dht.DHT22(machine.Pin(pin))
        self._measured: int | None = None

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return both; OSError when nothing answers, the check fails, or it was just read."""
        now = _time.ticks_ms()
        if self._measured is not None and _time.ticks_diff(now, self._measured) < _BETWEEN_MS:
            raise OSError("DHT22: read again within %d ms" % _BETWEEN_MS)
        self._measured = now
        try:
            self._sensor.measure()
        except Exception as error:  # the driver's check fails with Exception itself
            raise OSError(str(error)) from None
        return [
            ("temperature", (round(self._sensor.temperature() * 10), -1), "°C"),
            ("humidity", (round(self._sensor.humidity() * 10), -1), "%"),
        ]


def make(settings: "dict[str, int]") -> Dht22:
    """Return the sensor at the pin of the settings."""
    return Dht22(settings["pin"])
