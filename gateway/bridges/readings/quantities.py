"""The numbers of quantities and units in a frame (docs/understand/serial-protocol.md)."""

NAMED = 255
"""Number of a quantity or unit that is not in the tables; it follows as text."""

INSTANCE = 254
"""Precedes the quantity of a reading that is one of several: the instance follows as text."""

NO_UNIT = 0
"""Number of a reading without a unit."""

QUANTITIES: dict[int, str] = {
    1: "temperature",
    2: "humidity",
    3: "pressure",
    4: "voltage",
    5: "current",
    6: "power",
    7: "energy",
    8: "frequency",
    9: "illuminance",
    10: "carbon_dioxide",
    11: "particulates",
    12: "distance",
    13: "level",
    14: "volume",
    15: "flow",
    16: "mass",
    17: "speed",
    18: "direction",
    19: "rainfall",
    20: "moisture",
    21: "conductivity",
    22: "acidity",
    23: "acceleration",
    24: "count",
    25: "contact",
    26: "motion",
    27: "battery",
    28: "signal_strength",
}

UNITS: dict[int, str] = {
    1: "°C",
    2: "°F",
    3: "K",
    4: "%",
    5: "Pa",
    6: "hPa",
    7: "bar",
    8: "V",
    9: "mV",
    10: "A",
    11: "mA",
    12: "W",
    13: "kW",
    14: "Wh",
    15: "kWh",
    16: "Hz",
    17: "lx",
    18: "ppm",
    19: "µg/m³",
    20: "mm",
    21: "cm",
    22: "m",
    23: "l",
    24: "m³",
    25: "l/min",
    26: "m³/h",
    27: "g",
    28: "kg",
    29: "m/s",
    30: "km/h",
    31: "°",
    32: "µS/cm",
    33: "pH",
    34: "m/s²",
    35: "dBm",
    36: "ms",
    37: "s",
}
