"""Units that can be converted into each other, as Spark SQL."""

import json

_KELVIN = 273.15
_RANKINE = 459.67
DIMENSIONS: dict[str, dict[str, tuple[float, float]]] = {
    "temperature": {
        "K": (1.0, 0.0),
        **dict.fromkeys(("°C", "C", "℃", "degC"), (1.0, _KELVIN)),
        **dict.fromkeys(("°F", "F", "℉", "degF"), (5 / 9, _RANKINE * 5 / 9)),
    },
    "pressure": {
        "Pa": (1.0, 0.0),
        **dict.fromkeys(("hPa", "mbar"), (100.0, 0.0)),
        "kPa": (1_000.0, 0.0),
        "bar": (100_000.0, 0.0),
        "psi": (6_894.757293168, 0.0),
        "mmHg": (133.322387415, 0.0),
        "inHg": (3_386.389, 0.0),
    },
    "power": {"W": (1.0, 0.0), "mW": (0.001, 0.0), "kW": (1_000.0, 0.0), "MW": (1e6, 0.0)},
    "energy": {
        "Wh": (1.0, 0.0),
        "kWh": (1_000.0, 0.0),
        "MWh": (1e6, 0.0),
        "J": (1 / 3_600, 0.0),
        "kJ": (1 / 3.6, 0.0),
        "MJ": (1_000 / 3.6, 0.0),
    },
    "voltage": {"V": (1.0, 0.0), "mV": (0.001, 0.0), "kV": (1_000.0, 0.0)},
    "current": {"A": (1.0, 0.0), "mA": (0.001, 0.0)},
    "frequency": {"Hz": (1.0, 0.0), "kHz": (1_000.0, 0.0), "MHz": (1e6, 0.0)},
    "length": {
        "m": (1.0, 0.0),
        "mm": (0.001, 0.0),
        "cm": (0.01, 0.0),
        "km": (1_000.0, 0.0),
        "in": (0.0254, 0.0),
        "ft": (0.3048, 0.0),
    },
    "volume": {
        **dict.fromkeys(("m³", "m3"), (1.0, 0.0)),
        **dict.fromkeys(("l", "L"), (0.001, 0.0)),
        **dict.fromkeys(("ml", "mL"), (1e-6, 0.0)),
    },
    "flow": {
        **dict.fromkeys(("m³/h", "m3/h"), (1.0, 0.0)),
        **dict.fromkeys(("l/min", "L/min"), (0.06, 0.0)),
        **dict.fromkeys(("l/h", "L/h"), (0.001, 0.0)),
    },
    "mass": {"kg": (1.0, 0.0), "g": (0.001, 0.0), "t": (1_000.0, 0.0), "lb": (0.45359237, 0.0)},
    "speed": {
        "m/s": (1.0, 0.0),
        "km/h": (1 / 3.6, 0.0),
        "mph": (0.44704, 0.0),
        "kn": (0.514444, 0.0),
    },
    "time": {
        "s": (1.0, 0.0),
        "ms": (0.001, 0.0),
        "min": (60.0, 0.0),
        "h": (3_600.0, 0.0),
        "d": (86_400.0, 0.0),
    },
}
"""Units by dimension; the first is its base, in which a value is `value * factor + offset`."""


_TYPE = "map<string,struct<dimension:string,base:string,factor:double,offset:double>>"
_TABLE = json.dumps(
    {
        unit: {"dimension": dimension, "base": next(iter(units)), "factor": by, "offset": more}
        for dimension, units in DIMENSIONS.items()
        for unit, (by, more) in units.items()
    },
    ensure_ascii=False,
)


def known(unit: str) -> str:
    """Return SQL for what is known of the unit that an expression gives, null for nothing.

    The table is JSON, of which Spark makes one constant: a map of SQL would be 300 expressions.
    """
    return f"try_element_at(from_json('{_TABLE}', '{_TYPE}'), {unit})"


def converted(value: str, unit: str, into: str) -> str:
    """Return SQL for a value in another unit of its dimension; two units that are equal cost none.

    All three are expressions. It is null where the units are not of one dimension.
    """
    of, to = known(unit), known(into)
    scaled = f"(({value}) * {of}.factor + {of}.offset - {to}.offset) / {to}.factor"
    return (
        f"CASE WHEN {unit} IS NULL OR {into} IS NULL OR {unit} = {into} THEN {value}"
        f" WHEN {of}.dimension = {to}.dimension THEN {scaled} END"
    )
