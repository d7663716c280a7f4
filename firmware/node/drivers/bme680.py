"""BME680 and BME688: temperature, humidity, pressure and what gases in the air do to a resistor."""

import struct
import time

from node import const

from . import open_bus

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from machine import I2C

_CHIP_ID = const(0xD0)
_CHIP = const(0x61)
_VARIANT = const(0xF0)
_CALIBRATION = const(0x8A)
_CALIBRATION_BYTES = const(23)
_CALIBRATION_2 = const(0xE1)
_CALIBRATION_2_BYTES = const(14)
_HEATER_VALUE = const(0x00)
_HEATER_RANGE = const(0x02)
_RANGE_ERROR = const(0x04)
_HEATER = const(0x5A)
_HEATER_TIME = const(0x64)
_CONTROL_GAS = const(0x71)
_CONTROL_HUMIDITY = const(0x72)
_CONTROL = const(0x74)
_FIELD = const(0x1D)
_FIELD_BYTES = const(17)
_NEW = const(0x80)
_VALID_AND_STABLE = const(0x30)

ONCE = b"\x25"
"""One measurement of temperature and pressure without oversampling; humidity likewise is 1."""

HEATER_MS = b"\x59"
"""100 milliseconds: 25 times 4 (datasheet, 5.3.3.3)."""

_HEATER_CELSIUS = const(320)
_TRIES = const(12)
_BETWEEN_MS = const(25)

K1 = (0, 0, 0, 0, 0, -1, 0, -0.8, 0, 0, -0.2, -0.5, 0, -1, 0, 0)
K2 = (0, 0, 0, 0, 0.1, 0.7, 0, -0.8, -0.1, 0, 0, 0, 0, 0, 0, 0)
"""What a range of the resistor is off by, in percent (datasheet, table 16)."""


class Bme680:
    """Reads the sensor at an address; OSError when another chip answers.

    The first readings of the resistor are of a cold chip: a rise or fall counts, no single number.
    """

    def __init__(self, bus: "I2C", address: int) -> None:
        self._bus = bus
        self._address = address
        self._calibrated = False
        self._ambient = 25.0

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return all, the resistance only where the heater was hot; OSError without an answer."""
        if not self._calibrated:
            self._calibrate()
        self._write(_CONTROL_HUMIDITY, b"\x01")
        self._write(_HEATER, bytes([self.heater(self._ambient)]))
        self._write(_HEATER_TIME, HEATER_MS)
        self._write(_CONTROL_GAS, b"\x20" if self._is_688 else b"\x10")
        self._write(_CONTROL, ONCE)
        data = self._wait()
        celsius = self.temperature(data[5] << 12 | data[6] << 4 | data[7] >> 4)
        self._ambient = celsius
        pascal = self.pressure(data[2] << 12 | data[3] << 4 | data[4] >> 4)
        percent = self.humidity(data[8] << 8 | data[9], celsius)
        readings = [
            ("temperature", (round(celsius * 100), -2), "°C"),
            ("humidity", (round(percent * 100), -2), "%"),
            ("pressure", (round(pascal), -2), "hPa"),
        ]
        high, low = data[15:17] if self._is_688 else data[13:15]
        if low & _VALID_AND_STABLE == _VALID_AND_STABLE:
            ohms = self.resistance(high << 2 | low >> 6, low & 0x0F)
            readings.append(("gas_resistance", (round(ohms), 0), "Ω"))
        return readings

    def _wait(self) -> bytes:
        for _ in range(_TRIES):
            time.sleep(_BETWEEN_MS / 1000)
            data: bytes = self._bus.readfrom_mem(self._address, _FIELD, _FIELD_BYTES)
            if data[0] & _NEW:
                return data
        raise OSError("BME680: it does not end its measurement")

    def _write(self, register: int, data: bytes) -> None:
        self._bus.writeto_mem(self._address, register, data)

    def _byte(self, register: int) -> int:
        value: int = self._bus.readfrom_mem(self._address, register, 1)[0]
        return value

    def _calibrate(self) -> None:
        chip = self._byte(_CHIP_ID)
        if chip != _CHIP:
            raise OSError("chip 0x%02x, and not 0x%02x" % (chip, _CHIP))
        self._is_688 = self._byte(_VARIANT) == 1
        self.calibrate(
            self._bus.readfrom_mem(self._address, _CALIBRATION, _CALIBRATION_BYTES),
            self._bus.readfrom_mem(self._address, _CALIBRATION_2, _CALIBRATION_2_BYTES),
        )
        self._heat_range = self._byte(_HEATER_RANGE) >> 4 & 3
        self._heat_value = _signed(self._byte(_HEATER_VALUE))
        self._range_error = _signed(self._byte(_RANGE_ERROR)) >> 4
        self._calibrated = True

    def calibrate(self, first: bytes, second: bytes) -> None:
        """Take the numbers of the two blocks at 0x8A and 0xE1 (datasheet, 3.11)."""
        t2, t3, _, p1, p2, p3, _, p4, p5, p7, p6 = struct.unpack("<hbBHhbBhhbb", first[:16])
        p8, p9, p10 = struct.unpack("<hhB", first[18:23])
        self._p: tuple[int, ...] = (p1, p2, p3, p4, p5, p6, p7, p8, p9, p10)
        self._t: tuple[int, ...] = (struct.unpack("<H", second[8:10])[0], t2, t3)
        h1 = second[2] << 4 | second[1] & 0x0F
        h2 = second[0] << 4 | second[1] >> 4
        self._h: tuple[int, ...] = (h1, h2) + struct.unpack("<bbbBb", second[3:8])  # noqa: RUF005 - for MicroPython
        self._g = struct.unpack("<hbb", second[10:14])

    def temperature(self, raw: int) -> float:
        """Return the temperature in °C; the others are corrected by it."""
        t1, t2, t3 = self._t
        distance = raw / 131072 - t1 / 8192
        self._fine = distance * 8 * t2 + distance * distance * t3 * 16
        return self._fine / 5120

    def pressure(self, raw: int) -> float:
        """Return the pressure in Pa."""
        p1, p2, p3, p4, p5, p6, p7, p8, p9, p10 = self._p
        fine = self._fine / 2 - 64000
        offset = (fine * fine * p6 / 131072 + fine * p5 * 2) / 4 + p4 * 65536
        gain = (1 + (p3 * fine * fine / 16384 + p2 * fine) / 524288 / 32768) * p1
        if gain == 0:
            raise OSError("BME680: calibration of zero")
        value = (1048576 - raw - offset / 4096) * 6250 / gain
        cubic = (value / 256) * (value / 256) * (value / 256) * p10 / 131072
        return (
            value + (p9 * value * value / 2147483648 + value * p8 / 32768 + cubic + p7 * 128) / 16
        )

    def humidity(self, raw: int, celsius: float) -> float:
        """Return the humidity in percent."""
        h1, h2, h3, h4, h5, h6, h7 = self._h
        value = raw - (h1 * 16 + h3 / 2 * celsius)
        value *= h2 / 262144 * (1 + h4 / 16384 * celsius + h5 / 1048576 * celsius * celsius)
        value += (h6 / 16384 + h7 / 2097152 * celsius) * value * value
        return min(max(value, 0.0), 100.0)

    def heater(self, celsius: float) -> int:
        """Return what sets the heater to its temperature in air of another (datasheet, 3.3.5)."""
        g2, g1, g3 = self._g
        value = (g1 / 16 + 49) * (1 + (g2 / 32768 * 0.0005 + 0.00235) * _HEATER_CELSIUS)
        value += g3 / 1024 * celsius
        scale = 4 / (4 + self._heat_range) / (1 + self._heat_value * 0.002)
        return min(max(int(3.4 * (value * scale - 25)), 0), 255)

    def resistance(self, raw: int, range_: int) -> float:
        """Return the resistance in ohms."""
        if self._is_688:
            return 1e6 * (262144 >> range_) / (4096 + (raw - 512) * 3)
        step = (1340 + 5 * self._range_error) * (1 + K1[range_] / 100)
        return 8e6 / ((1 + K2[range_] / 100) * (1 << range_) * ((raw - 512) / step + 1))


def _signed(number: int) -> int:
    return number - 256 if number & 0x80 else number


def make(settings: "dict[str, int]") -> Bme680:
    """Return the sensor that the settings name."""
    return Bme680(open_bus(settings), settings["address"])
