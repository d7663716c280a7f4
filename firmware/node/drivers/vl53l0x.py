"""VL53L0X: a distance up to two metres, by the time that light takes."""

import time

from node import const

from . import open_bus

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from machine import I2C

_ADDRESS = const(0x29)
_MODEL_ID = const(0xC0)
_MODEL = const(0xEE)
_START = const(0x00)
_CLEAR = const(0x0B)
_STATUS = const(0x13)
_RESULT = const(0x14)
_RESULT_BYTES = const(12)
_VOLTAGE = const(0x89)
_STOP = const(0x91)
_VALID = const(11)
_TRIES = const(20)
_BETWEEN_MS = const(10)

OPEN = ((0x80, 1), (0xFF, 1), (0x00, 0))
SHUT = ((0x00, 1), (0xFF, 0), (0x80, 0))
"""Open and shut the page of registers that holds the stop value (ST's API, VL53L0X_DataInit)."""


class Vl53l0x:
    """Reads the sensor at its address, with what it is set to when it gets power."""

    def __init__(self, bus: "I2C") -> None:
        self._bus = bus
        self._stop = -1

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return the distance; OSError when nothing answers, or nothing is near enough."""
        if self._stop < 0:
            self._begin()
        self._write_all(OPEN)
        self._write(_STOP, self._stop)
        self._write_all(SHUT)
        self._write(_START, 1)
        tries = _TRIES
        while not self._byte(_STATUS) & 7:
            tries -= 1
            if tries <= 0:
                raise OSError("VL53L0X: it does not end its measurement")
            time.sleep(_BETWEEN_MS / 1000)
        data = self._bus.readfrom_mem(_ADDRESS, _RESULT, _RESULT_BYTES)
        self._write(_CLEAR, 1)
        if data[0] >> 3 & 15 != _VALID:
            raise OSError("VL53L0X: nothing is near enough")
        return [("distance", (data[10] << 8 | data[11], 0), "mm")]

    def _begin(self) -> None:
        model = self._byte(_MODEL_ID)
        if model != _MODEL:
            raise OSError("model 0x%02x, and not 0x%02x" % (model, _MODEL))
        self._write(_VOLTAGE, self._byte(_VOLTAGE) | 1)  # pins of 2.8 V, as boards have them
        self._write_all(OPEN)
        self._stop = self._byte(_STOP)
        self._write_all(SHUT)

    def _write_all(self, values: "tuple[tuple[int, int], ...]") -> None:
        for register, value in values:
            self._write(register, value)

    def _write(self, register: int, value: int) -> None:
        self._bus.writeto_mem(_ADDRESS, register, bytes([value]))

    def _byte(self, register: int) -> int:
        value: int = self._bus.readfrom_mem(_ADDRESS, register, 1)[0]
        return value


def make(settings: "dict[str, int]") -> Vl53l0x:
    """Return the sensor on the bus of the settings."""
    return Vl53l0x(open_bus(settings))
