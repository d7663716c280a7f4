"""The numbers that stand for quantities and units in a frame (docs/serial-protocol.md)."""

NAMED = 255
"""Number of a quantity or unit that is not in the tables and follows as text."""

NO_UNIT = 0
"""Number of a reading without a unit."""

QUANTITIES = (
    "",  # 0 is never sent
    "temperature",
    "humidity",
    "pressure",
    "voltage",
    "current",
    "power",
    "energy",
    "frequency",
    "illuminance",
    "carbon_dioxide",
    "particulates",
    "distance",
    "level",
    "volume",
    "flow",
    "mass",
    "speed",
    "direction",
    "rainfall",
    "moisture",
    "conductivity",
    "acidity",
    "acceleration",
    "count",
    "contact",
    "motion",
    "battery",
    "signal_strength",
)
"""Name of a quantity by its number."""

UNITS = (
    "",
    "°C",
    "°F",
    "K",
    "%",
    "Pa",
    "hPa",
    "bar",
    "V",
    "mV",
    "A",
    "mA",
    "W",
    "kW",
    "Wh",
    "kWh",
    "Hz",
    "lx",
    "ppm",
    "µg/m³",
    "mm",
    "cm",
    "m",
    "l",
    "m³",
    "l/min",
    "m³/h",
    "g",
    "kg",
    "m/s",
    "km/h",
    "°",
    "µS/cm",
    "pH",
    "m/s²",
    "dBm",
    "ms",
    "s",
)
"""Symbol of a unit by its number."""
