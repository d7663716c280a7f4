"""DS18B20: one or more thermometers on one wire."""

import time

import ds18x20
import machine
import onewire

from node import const

_CONVERSION_MS = const(750)
"""Milliseconds that a thermometer needs for 12 bits."""

_SENSORS_MAX = const(8)
_RESCAN = const(10)
"""Readings without an answer after which the wire is searched again."""


class Ds18b20:
    """Reads with MicroPython's own driver; a reading waits for the conversion."""

    def __init__(self, pin: int) -> None:
        self._bus = ds18x20.DS18X20(onewire.OneWire(machine.Pin(pin)))
        self._found: list[bytearray] = []
        self._failures = _RESCAN

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return each thermometer's temperature; OSError when none answers."""
        if self._failures >= _RESCAN or not self._found:
            self._found = self._bus.scan()[:_SENSORS_MAX]
            self._failures = 0
        if not self._found:
            raise OSError("no DS18B20 answers")
        self._bus.convert_temp()
        time.sleep(_CONVERSION_MS / 1000)
        readings = []
        for number, address in enumerate(self._found):
            try:
                celsius = self._bus.read_temp(address)
            except Exception:
                self._failures += 1
                continue
            name = "temperature" if number == 0 else "temperature_%d" % (number + 1)
            readings.append((name, (round(celsius * 100), -2), "°C"))
        if not readings:
            raise OSError("no DS18B20 answers")
        return readings


def make(settings: "dict[str, int]") -> Ds18b20:
    """Return the sensors at the pin of the settings."""
    return Ds18b20(settings["pin"])
