"""A sensor that is not there: temperature, humidity and pressure that wander, from a seed."""


class SimulatedSensor:
    """Gives the same readings for the same seed on every interpreter."""

    def __init__(self, seed: int = 1) -> None:
        self._state = seed & 0x7FFFFFFF
        self._values = [2100, 4800, 101300]  # hundredths of °C, of %, and of hPa

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        """Return the readings of this moment as (quantity, (mantissa, exponent), unit)."""
        temperature, humidity, pressure = self._values
        self._values = [
            temperature + self._noise(25) + (2100 - temperature) // 64,
            humidity + self._noise(40) + (4800 - humidity) // 64,
            pressure + self._noise(10) + (101300 - pressure) // 64,
        ]
        return [
            ("temperature", (temperature, -2), "°C"),
            ("humidity", (humidity, -2), "%"),
            ("pressure", (pressure, -2), "hPa"),
        ]

    def _noise(self, span: int) -> int:
        # A linear congruential generator, because boards differ in what their `random` has.
        self._state = (self._state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self._state >> 8) % (2 * span + 1) - span
