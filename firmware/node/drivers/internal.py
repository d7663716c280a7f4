"""The temperature of the board's chip: some degrees above the room's."""

import sys

from node import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable

_RP2_CHANNEL = const(4)
"""Of the analog converter on an RP2040 and RP2350."""


def _rp2() -> "Callable[[], float]":
    import machine

    channel = machine.ADC(_RP2_CHANNEL)

    def celsius() -> float:
        # 0.706 V at 27 °C, and 1.721 mV less for each degree more (RP2040 datasheet, 4.9.5)
        volts: float = channel.read_u16() * 3.3 / 65535
        return 27 - (volts - 0.706) / 0.001721

    return celsius


def _esp32() -> "Callable[[], float]":
    import esp32

    celsius = getattr(esp32, "mcu_temperature", None)
    if celsius is not None:
        return celsius  # type: ignore[no-any-return]  # what the board's module gives
    return lambda: (esp32.raw_temperature() - 32) / 1.8  # in °F on the first ESP32


class Internal:
    """Reads a function that gives degrees Celsius."""

    def __init__(self, celsius: "Callable[[], float]") -> None:
        self._celsius = celsius

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return the temperature, to a tenth of a degree."""
        return [("temperature", (round(self._celsius() * 10), -1), "°C")]


def make(_settings: "dict[str, int]") -> Internal:
    """Return the sensor of this board."""
    return Internal(_esp32() if sys.platform == "esp32" else _rp2())
