"""What drivers measure, and which of several sensors of one quantity a reading is from."""

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .loop import Value

QUANTITIES = {
    "simulated": "temperature humidity pressure",
    "internal": "temperature",
    "dht22": "temperature humidity",
    "bme280": "temperature humidity pressure",
    "bmp280": "temperature pressure",
    "bme680": "temperature humidity pressure gas_resistance",
    "vl53l0x": "distance",
    "sht3x": "temperature humidity",
    "scd4x": "carbon_dioxide temperature humidity",
}
"""By driver; a thermometer on a wire has an address, and an analog pin what the settings say."""


CHOSEN = {"adc": "voltage", "hx711": "weight"}
"""Drivers of which the settings say what they measure, with what that is else."""


def quantities(settings: "dict[str, Any]") -> "list[str]":
    """Return what a sensor measures that needs a name to be distinguished from another's."""
    usual = CHOSEN.get(settings.get("driver", ""))
    if usual:
        return [settings.get("quantity", usual)]
    return QUANTITIES.get(settings.get("driver", ""), "").split()


def instances(sensors: "list[dict[str, Any]]") -> "list[dict[str, str]]":
    """Return for each sensor its instances by quantity, `*` for all of them.

    One without a name has none of a quantity that no sensor before it measures, else one of its
    driver and place: `internal`, `bme280-119`.
    """
    found: list[dict[str, str]] = []
    known: list[str] = []
    for settings in sensors:
        if settings.get("name"):
            found.append({"*": settings["name"]})
            continue
        own = {}
        for quantity in quantities(settings):
            if quantity in known:
                own[quantity] = default_name(settings)
            known.append(quantity)
        found.append(own)
    return found


def default_name(settings: "dict[str, Any]") -> str:
    """Return the name of a sensor that has none, by its driver and where it is wired."""
    name: str = settings["driver"]
    for key in ("i2c", "address", "pin"):
        if settings.get(key) and not (key == "i2c" and not settings.get("address")):
            name += "-%s" % settings[key]
    return name


class Named:
    """Gives the readings of the sensors of the settings their instances."""

    def __init__(self, sensors: "list[dict[str, Any]]") -> None:
        self._instances = instances(sensors)

    def __call__(
        self, index: int, readings: "Sequence[tuple[str, Value, str | None]]"
    ) -> "list[tuple[str, Value, str | None]]":
        """Return the readings of a sensor as series."""
        own = self._instances[index]
        found = []
        for series, value, unit in readings:
            instance = own.get(series) or ("" if "/" in series else own.get("*"))
            found.append((series + "/" + instance if instance else series, value, unit))
        return found
