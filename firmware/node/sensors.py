"""The sensors of a node's settings, each made by its driver."""

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Sensor, Value


class Sensors:
    """The sensors of the settings, read as one; what does not answer is left out.

    What they measure of one quantity is distinguished by their names (`temperature/boiler`), or by
    what the settings say of them, never by which of them answers.

    Each is made by its driver before it is read first. One that cannot be made is tried again at
    the next sample, so that a wrong pin or a missing driver keeps neither the others nor commands
    and updates from working.
    """

    def __init__(self, settings: "dict[str, Any]", feed: "Callable[[], None]") -> None:
        self._settings = settings.get("sensors", [{"driver": "simulated"}])
        self._feed = feed  # tells the watchdog between two sensors that the program is alive
        self._sensors: list[Sensor | None] = [None for _ in self._settings]
        self._named: Any = None
        if len(self._settings) > 1 or (self._settings and self._settings[0].get("name")):
            from .measured import Named  # one without a name does without its memory

            self._named = Named(self._settings)

    def read(self) -> "list[tuple[str, Value, str | None]]":
        """Return the readings of all; OSError when none answers."""
        readings: list[tuple[str, Value, str | None]] = []
        failure = None
        for index, settings in enumerate(self._settings):
            self._feed()
            try:
                sensor = self._sensors[index]
                if sensor is None:
                    sensor = self._sensors[index] = _make(settings)
                found = sensor.read()
                readings.extend(self._named(index, found) if self._named else found)
            except (OSError, ImportError, KeyError, ValueError) as error:
                failure = error
        if failure is not None and not readings:
            raise OSError(str(failure))
        return readings


def _make(settings: "dict[str, Any]") -> "Sensor":
    """Return a sensor from its driver; only drivers in use are loaded."""
    driver = __import__("node.drivers." + settings["driver"], None, None, ["make"])
    sensor: Sensor = driver.make(settings)
    return sensor
