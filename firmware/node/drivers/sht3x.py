"""SHT30, SHT31 and SHT35: temperature and humidity over I2C."""

import time

from node import const
from node.crc8 import crc8

from . import open_bus

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from machine import I2C

MEASURE = b"\x24\x00"
"""One measurement, high repeatability, no clock stretching (datasheet, table 9)."""

_MEASURE_MS = const(16)


class Sht3x:
    """Reads the sensor at an address."""

    def __init__(self, bus: "I2C", address: int) -> None:
        self._bus = bus
        self._address = address

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return both, in hundredths; OSError when nothing answers or a check fails."""
        self._bus.writeto(self._address, MEASURE)
        time.sleep(_MEASURE_MS / 1000)
        data = self._bus.readfrom(self._address, 6)
        if crc8(data[:2]) != data[2] or crc8(data[3:5]) != data[5]:
            raise OSError("SHT3x: a check failed")
        raw_temperature = data[0] << 8 | data[1]
        raw_humidity = data[3] << 8 | data[4]
        return [
            ("temperature", (17500 * raw_temperature // 65535 - 4500, -2), "°C"),
            ("humidity", (10000 * raw_humidity // 65535, -2), "%"),
        ]


def make(settings: "dict[str, int]") -> Sht3x:
    """Return the sensor that the settings name."""
    return Sht3x(open_bus(settings), settings["address"])
