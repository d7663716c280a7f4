"""Units that can be converted into each other."""

from collections.abc import Sequence

import numpy as np

from pipeline.tables.arrays import Array

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


class Units:
    """The units of some rows by code, each with what can be converted into it."""

    def __init__(self, units: Sequence[str]) -> None:
        bases = [next(iter(known)) for known in DIMENSIONS.values()]
        self.names = list(dict.fromkeys([*units, *bases]))
        """Those of the rows, in their order, and each dimension's base."""
        places = {name: place for place, name in enumerate(self.names)}
        of = {
            unit: (dimension, *scale)
            for dimension, known in enumerate(DIMENSIONS.values())
            for unit, scale in known.items()
        }
        known = [of.get(name, (-1, 1.0, 0.0)) for name in self.names]
        known.append((-1, 1.0, 0.0))  # the code -1, of no unit
        self.dimension = np.array([each[0] for each in known], np.int64)
        """The place in DIMENSIONS of each code's, -1 for an unknown unit."""
        self._factor = np.array([each[1] for each in known])
        self._offset = np.array([each[2] for each in known])
        self._base = np.array([*(places[base] for base in bases), -1], np.int64)

    def convertible(self, one: Array, other: Array) -> Array:
        """Say which units are of one dimension."""
        found: Array = self.dimension[one] == self.dimension[other]
        return found & (self.dimension[one] >= 0)

    def base(self, unit: Array) -> Array:
        """Return the base unit of the dimension of each, itself where that is unknown."""
        dimension = self.dimension[unit]
        found: Array = np.where(dimension >= 0, self._base[dimension], unit)
        return found

    def converted(self, value: Array, unit: Array, into: Array) -> tuple[Array, Array]:
        """Return values in other units of their dimensions, and which could be converted.

        A value whose unit is unknown on one of both sides is taken as it is.
        """
        same = (unit < 0) | (into < 0) | (unit == into)
        if same.all():
            return value, same
        scaled = value * self._factor[unit] + self._offset[unit] - self._offset[into]
        found = np.where(same, value, scaled / self._factor[into])
        return found, same | self.convertible(unit, into)
