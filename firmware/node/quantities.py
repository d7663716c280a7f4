"""The numbers that stand for quantities and units in a frame (docs/understand/serial-protocol.md).

Each list is one text, with a space before and behind each name: a board has no memory for more.
"""

NAMED = 255
"""Number of a quantity or unit that is not in the lists and follows as text."""

INSTANCE = 254
"""Stands before the quantity of a reading that is one of several: the instance follows as text."""

NO_UNIT = 0
"""Number of a reading without a unit."""

QUANTITIES = (
    " temperature humidity pressure voltage current power energy frequency illuminance"
    " carbon_dioxide particulates distance level volume flow mass speed direction"
    " rainfall moisture conductivity acidity acceleration count contact motion battery"
    " signal_strength "
)
"""Names of quantities; the first one has number 1."""

UNITS = (
    " °C °F K % Pa hPa bar V mV A mA W kW Wh kWh Hz lx ppm µg/m³ mm cm m l m³ l/min"
    " m³/h g kg m/s km/h ° µS/cm pH m/s² dBm ms s "
)
"""Symbols of units; the first one has number 1."""


def number_of(name: str, names: str) -> int:
    """Return the number of a name in one of the lists, 0 if it is not there."""
    if not name or " " in name:
        return 0
    before, found, _ = names.partition(" " + name + " ")
    return before.count(" ") + 1 if found else 0
