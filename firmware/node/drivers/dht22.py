"""A DHT22 (AM2302): temperature and humidity over one wire, at most every two seconds."""

import dht
import machine


class Dht22:
    """Reads with MicroPython's own driver."""

    def __init__(self, pin: int) -> None:
        self._sensor = dht.DHT22(machine.Pin(pin))

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return both; OSError when nothing answers or the check fails."""
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
