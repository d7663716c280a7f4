"""A voltage at an analog pin, or what it stands for."""

import machine

from node import const
from node.decimals import decimal

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

_DIGITS = const(3)


class Adc:
    """Reads a pin in volts: value = volts * scale + offset."""

    def __init__(self, settings: "dict[str, Any]") -> None:
        self._adc = machine.ADC(machine.Pin(settings["pin"]))
        self._quantity = settings.get("quantity", "voltage")
        self._unit = settings.get("unit", "V")
        self._scale = settings.get("scale", 1)
        self._offset = settings.get("offset", 0)

    def read(self) -> "list[tuple[str, tuple[int, int], str | None]]":
        """Return the value, to a thousandth."""
        if hasattr(self._adc, "read_uv"):  # calibrated, on an ESP32
            volts = self._adc.read_uv() / 1000000
        else:
            volts = self._adc.read_u16() * 3.3 / 65535
        value = decimal(volts * self._scale + self._offset, _DIGITS)
        return [(self._quantity, value, self._unit)]


def make(settings: "dict[str, Any]") -> Adc:
    """Return the sensor at the pin of the settings."""
    return Adc(settings)
