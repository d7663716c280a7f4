"""HX711: a load cell, such as a scale's, by two wires."""

import time

import machine

from node import const
from node.decimals import decimal

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

_BITS = const(24)
_TRIES = const(50)
_BETWEEN_MS = const(10)
"""It measures ten times a second, and has a value ready while its data wire is low."""

_DIGITS = const(3)


class Hx711:
    """Reads channel A with a gain of 128: value = raw * scale + offset."""

    def __init__(self, settings: "dict[str, Any]") -> None:
        self._data = machine.Pin(settings["pin"], machine.Pin.IN)
        self._clock = machine.Pin(settings["clock"], machine.Pin.OUT)
        self._clock.value(0)
        self._quantity = settings.get("quantity", "weight")
        self._unit = settings.get("unit")
        self._scale = settings.get("scale", 1)
        self._offset = settings.get("offset", 0)

    def read(self) -> "list[tuple[str, tuple[int, int], str | None]]":
        """Return the value, to a thousandth; OSError when nothing answers, or beyond its range."""
        tries = _TRIES
        while self._data.value():
            tries -= 1
            if not tries:
                raise OSError("HX711: no answer")
            time.sleep(_BETWEEN_MS / 1000)
        raw = 0
        for _ in range(_BITS):
            raw = raw << 1 | self._pulse()
        self._pulse()  # one more: channel A and 128 for the next time
        if raw & 1 << _BITS - 1:
            raw -= 1 << _BITS
        if raw in (-(1 << _BITS - 1), (1 << _BITS - 1) - 1):
            raise OSError("HX711: beyond its range")
        return [(self._quantity, decimal(raw * self._scale + self._offset, _DIGITS), self._unit)]

    def _pulse(self) -> int:
        # 60 µs of a high clock would switch it off
        state = machine.disable_irq()
        self._clock.value(1)
        self._clock.value(0)
        machine.enable_irq(state)
        return int(self._data.value())


def make(settings: "dict[str, Any]") -> Hx711:
    """Return the sensor at the pins of the settings."""
    return Hx711(settings)
