"""BME280: temperature, humidity and pressure over I2C, in whole numbers."""

import struct
import time

from node import const

from . import open_bus

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from machine import I2C

_CHIP_ID = const(0xD0)
_CALIBRATION = const(0x88)
_CALIBRATION_BYTES = const(26)
_HUMIDITY_CALIBRATION = const(0xE1)
_HUMIDITY_CALIBRATION_BYTES = const(7)
_CONTROL_HUMIDITY = const(0xF2)
_CONTROL = const(0xF4)
_DATA = const(0xF7)
_DATA_BYTES = const(8)
ONCE = b"\x25"
"""One measurement of temperature and pressure without oversampling; humidity likewise is 1."""

_MEASURE_MS = const(10)


class Bme280:
    """Reads the sensor at an address; OSError when another chip answers."""

    chip = 0x60
    has_humidity = True

    def __init__(self, bus: "I2C", address: int) -> None:
        self._bus = bus
        self._address = address
        self._calibrated = False

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return all, in hundredths of °C, % and hPa; OSError when nothing answers."""
        if not self._calibrated:
            self._calibrate()
        if self.has_humidity:
            self._bus.writeto_mem(self._address, _CONTROL_HUMIDITY, b"\x01")
        self._bus.writeto_mem(self._address, _CONTROL, ONCE)
        time.sleep(_MEASURE_MS / 1000)
        size = _DATA_BYTES if self.has_humidity else _DATA_BYTES - 2
        data = self._bus.readfrom_mem(self._address, _DATA, size)
        pressure = data[0] << 12 | data[1] << 4 | data[2] >> 4
        temperature = data[3] << 12 | data[4] << 4 | data[5] >> 4
        fine = self.fine(temperature)
        readings = [
            ("temperature", ((fine * 5 + 128) >> 8, -2), "°C"),
            ("pressure", (self.pressure(pressure, fine), -2), "hPa"),
        ]
        if self.has_humidity:
            wet = self.humidity(data[6] << 8 | data[7], fine)
            readings.insert(1, ("humidity", (wet, -2), "%"))
        return readings

    def _calibrate(self) -> None:
        chip = self._bus.readfrom_mem(self._address, _CHIP_ID, 1)[0]
        if chip != self.chip:
            raise OSError("chip 0x%02x, and not 0x%02x" % (chip, self.chip))
        first = self._bus.readfrom_mem(self._address, _CALIBRATION, _CALIBRATION_BYTES)
        second = bytes(_HUMIDITY_CALIBRATION_BYTES)
        if self.has_humidity:
            second = self._bus.readfrom_mem(
                self._address, _HUMIDITY_CALIBRATION, _HUMIDITY_CALIBRATION_BYTES
            )
        self.calibrate(first, second)

    def calibrate(self, first: bytes, second: bytes) -> None:
        """Take the numbers of the two blocks at 0x88 and 0xE1 (datasheet, table 16)."""
        self._t = struct.unpack("<Hhh", first[:6])
        self._p = struct.unpack("<Hhhhhhhhh", first[6:24])
        h2, h3 = struct.unpack("<hB", second[:3])
        h4 = _signed(second[3] << 4 | second[4] & 0x0F)
        h5 = _signed(second[5] << 4 | second[4] >> 4)
        self._h = (first[25], h2, h3, h4, h5, struct.unpack("<b", second[6:])[0])
        self._calibrated = True

    def fine(self, raw: int) -> int:
        """Return the temperature that the other two need, in 1/5120 °C (datasheet, 4.2.3)."""
        t1, t2, t3 = self._t
        first = ((raw >> 3) - (t1 << 1)) * t2 >> 11
        second = (((raw >> 4) - t1) * ((raw >> 4) - t1) >> 12) * t3 >> 14
        return int(first + second)

    def pressure(self, raw: int, fine: int) -> int:
        """Return the pressure in Pa."""
        p1, p2, p3, p4, p5, p6, p7, p8, p9 = self._p
        var1 = fine - 128000
        var2 = var1 * var1 * p6 + (var1 * p5 << 17) + (p4 << 35)
        var1 = (var1 * var1 * p3 >> 8) + (var1 * p2 << 12)
        var1 = ((1 << 47) + var1) * p1 >> 33
        if var1 == 0:
            raise OSError("BME280: calibration of zero")
        value = ((1048576 - raw << 31) - var2) * 3125 // var1
        value = value + (p9 * (value >> 13) * (value >> 13) >> 25) + (p8 * value >> 19) >> 8
        return int(value + (p7 << 4)) + 128 >> 8

    def humidity(self, raw: int, fine: int) -> int:
        """Return the humidity in hundredths of a percent."""
        h1, h2, h3, h4, h5, h6 = self._h
        value = fine - 76800
        gain = ((value * h6 >> 10) * ((value * h3 >> 11) + 32768) >> 10) + 2097152
        value = ((raw << 14) - (h4 << 20) - h5 * value + 16384 >> 15) * (gain * h2 + 8192 >> 14)
        value -= ((value >> 15) * (value >> 15) >> 7) * h1 >> 4
        value = min(max(value, 0), 419430400)
        return int((value >> 12) * 100 + 512 >> 10)


def _signed(number: int) -> int:
    return number - 4096 if number & 0x800 else number


def make(settings: "dict[str, int]") -> Bme280:
    """Return the sensor that the settings name."""
    return Bme280(open_bus(settings), settings["address"])
