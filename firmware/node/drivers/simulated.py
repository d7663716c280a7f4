"""The sensor that is not there."""

from node.simulated_sensor import SimulatedSensor


def make(settings: "dict[str, int]") -> SimulatedSensor:
    """Return the sensor; `seed` may make its weather another one."""
    return SimulatedSensor(settings.get("seed", 1))
