"""BMP280: temperature and pressure over I2C; a BME280 without its humidity."""

from . import open_bus
from .bme280 import Bme280


class Bmp280(Bme280):
    """Reads the sensor at an address; OSError when another chip answers."""

    chip = 0x58
    has_humidity = False


def make(settings: "dict[str, int]") -> Bmp280:
    """Return the sensor that the settings name."""
    return Bmp280(open_bus(settings), settings["address"])
