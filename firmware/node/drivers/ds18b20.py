"""DS18B20: one or more thermometers on one wire."""

import time
from binascii import hexlify

import ds18x20
import machine
import onewire

from node import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

_CONVERSION_MS = const(750)
"""Milliseconds that a thermometer needs for 12 bits."""

_SENSORS_MAX = const(8)
_RESCAN = const(10)
"""Readings without an answer after which the wire is searched again."""


_POWER_ON = const(8500)
"""Hundredths of a degree in the scratchpad of a thermometer that was given power."""

_NEAR = const(500)
"""Hundredths of a degree within which the value before makes 85 °C likely."""

_COUNT_BYTE = const(6)
_COUNT_AT_POWER_ON = const(0x0C)
"""What that byte of the scratchpad is until the first conversion; a true 85 °C makes it 0x10."""


class Ds18b20:
    """Reads with MicroPython's own driver; a reading waits for the conversion.

    A thermometer is known by its address, or by the name that `names` gives that; one that is
    `single` on its wire has no instance. 85 °C is also what a thermometer says that was given power
    and has measured nothing: that is left out.
    """

    def __init__(
        self, pin: int, names: "dict[str, str] | None" = None, single: bool = False
    ) -> None:
        self._bus = ds18x20.DS18X20(onewire.OneWire(machine.Pin(pin)))
        self._names = names or {}
        self._single = single
        self._found: list[bytearray] = []
        self._before: dict[str, int] = {}
        self._failures = _RESCAN

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return each thermometer's temperature; OSError when none answers."""
        if self._failures >= _RESCAN or not self._found:
            self._found = self._bus.scan()[:_SENSORS_MAX]
            self._failures = 0
        if not self._found:
            raise OSError("no DS18B20 answers")
        if self._single and len(self._found) > 1:
            self._failures += 1
            raise OSError("%d DS18B20 answer where one is said to be" % len(self._found))
        self._bus.convert_temp()
        time.sleep(_CONVERSION_MS / 1000)
        readings = []
        for address in self._found:
            try:
                hundredths = round(self._bus.read_temp(address) * 100)
            except Exception:
                self._failures += 1
                continue
            name = hexlify(bytes(address)).decode()
            before = self._before.get(name)
            if hundredths == _POWER_ON and not self._is_true(address, before):
                self._failures += 1
                continue
            self._before[name] = hundredths
            series = "temperature" if self._single else "temperature/" + self._names.get(name, name)
            readings.append((series, (hundredths, -2), "°C"))
        if not readings:
            raise OSError("no DS18B20 answers")
        return readings

    def _is_true(self, address: bytearray, before: "int | None") -> bool:
        """Return whether 85 °C was measured: a byte says it, or the value before was near."""
        if before is not None and abs(before - _POWER_ON) <= _NEAR:
            return True
        return bool(self._bus.read_scratch(address)[_COUNT_BYTE] != _COUNT_AT_POWER_ON)


def make(settings: "dict[str, Any]") -> Ds18b20:
    """Return the sensors at the pin of the settings."""
    return Ds18b20(settings["pin"], settings.get("names"), settings.get("single", False))
