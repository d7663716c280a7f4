"""What named values mean: which are readings, of which quantity and in which unit."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.registry import QUANTITIES, quantity_name
from gateway.config.described import check

FIELDS_MAX = 64
"""Readings of one object or line; what comes behind them is left out."""

DEPTH_MAX = 3
"""Objects in objects; what lies deeper is left out."""

NOT_READINGS = frozenset({
    *("node", "id", "device", "name", "time", "timestamp", "ts", "unit", "seq", "sequence"),
})  # fmt: skip
"""Names whose values describe the others; a map can still make them readings."""

KEYS = ("quantity", "unit", "scale", "offset", "invert")

Found = tuple[str, Value, str | None]
"""Quantity, value and unit."""


@dataclass(frozen=True, slots=True)
class Field:
    """What one name stands for; a number becomes value x scale + offset."""

    quantity: str
    unit: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    invert: bool = False
    """Whether true means false."""


@dataclass(frozen=True, slots=True)
class ReadingMap:
    """Names with their fields, in which None leaves a name out.

    Other names are looked up in the registry with its aliases, and are quantities of their own
    where it does not know them, unless the map is `strict`.
    """

    fields: Mapping[str, Field | None] = field(default_factory=dict)
    strict: bool = False

    def readings(self, values: Mapping[str, object]) -> list[Found]:
        """Return the numbers, truths and texts of an object, and of objects in it."""
        found: list[Found] = []
        for name, value in _flat(values, "", DEPTH_MAX):
            if len(found) == FIELDS_MAX:
                break
            reading = self._reading(name, value)
            if reading is not None:
                found.append(reading)
        return found

    def _reading(self, name: str, value: Value) -> Found | None:
        last = name.rpartition(".")[2]
        for known in (name, last):
            if known in self.fields:
                meant = self.fields[known]
                return None if meant is None else (meant.quantity, _moved(value, meant), meant.unit)
        if self.strict or last.lower() in NOT_READINGS:
            return None
        quantity = quantity_name(last)
        if quantity in QUANTITIES:
            units = QUANTITIES[quantity].units
            return quantity, value, (units[0] or None) if units else None
        return name, value, None


@check(
    "a table of names",
    type="object",
    additionalProperties={
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"const": False},
            {
                "type": "object",
                "properties": {
                    "quantity": {"type": "string", "minLength": 1},
                    "unit": {"type": "string"},
                    "scale": {"type": "number"},
                    "offset": {"type": "number"},
                    "invert": {"type": "boolean"},
                },
                "required": ["quantity"],
                "additionalProperties": False,
            },
        ]
    },
)
def reading_map(value: object) -> ReadingMap:
    """Accept a table such as `{ temp = "temperature", t2 = { quantity = "power", scale = 0.1 } }`.

    `false` leaves a name out; `"*" = false` leaves out all that the table does not name.
    """
    if not isinstance(value, dict):
        raise ValueError('a table such as { temp = "temperature", debug = false }')  # noqa: TRY004 - one error for every bad setting
    table = dict(value)
    strict = table.pop("*", True) is False
    return ReadingMap({name: _field(name, meant) for name, meant in table.items()}, strict)


def _field(name: str, meant: object) -> Field | None:
    if meant is False:
        return None
    if isinstance(meant, str):
        meant = {"quantity": meant}
    if not isinstance(meant, dict) or not set(meant) <= set(KEYS):
        raise ValueError(f"{name}: a quantity, false, or a table with {', '.join(KEYS)}")
    quantity, unit = meant.get("quantity"), meant.get("unit")
    if not isinstance(quantity, str) or not quantity:
        raise ValueError(f"{name}.quantity: a text must be given")
    if unit is not None and not isinstance(unit, str):
        raise ValueError(f"{name}.unit: only text is allowed")
    known = quantity_name(quantity)
    if unit is None and known in QUANTITIES and QUANTITIES[known].units:
        unit = QUANTITIES[known].units[0] or None
    scale, offset = _number(name, meant, "scale", 1.0), _number(name, meant, "offset", 0.0)
    invert = meant.get("invert", False)
    if not isinstance(invert, bool):
        raise ValueError(f"{name}.invert: true or false")  # noqa: TRY004 - one error for all
    return Field(known, unit, scale, offset, invert)


def _number(name: str, table: Mapping[str, object], key: str, default: float) -> float:
    number = table.get(key, default)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"{name}.{key}: only a finite number is allowed")
    return float(number)


def _flat(values: Mapping[str, object], prefix: str, depth: int) -> Iterator[tuple[str, Value]]:
    for name, value in values.items():
        if isinstance(value, dict):
            if depth > 1:
                yield from _flat(value, f"{prefix}{name}.", depth - 1)
        elif isinstance(value, bool | int | float | str):
            yield f"{prefix}{name}", value


def _moved(value: Value, meant: Field) -> Value:
    if isinstance(value, bool):
        return value is not meant.invert
    plain = meant.scale == 1.0 and meant.offset == 0.0
    if plain or isinstance(value, str):
        return value
    try:
        return round(value * meant.scale + meant.offset, 9)
    except OverflowError:  # an integer beyond every float: refused as a reading
        return math.inf


NO_MAP = ReadingMap()
"""The registry's names alone."""
