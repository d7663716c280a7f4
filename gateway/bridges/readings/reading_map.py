"""Interprets named values: which are readings, of which quantity and in which unit."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.bridges.readings.event_time import TIME_NAMES
from gateway.bridges.readings.reading import INSTANCES_RESERVED, Value, instance_name
from gateway.bridges.readings.registry import (
    QUANTITIES,
    Kind,
    Quantity,
    base_quantity,
    binary_name,
    instance_of,
    meaning,
    quantity_name,
    unit_name,
)
from gateway.bridges.readings.written import ABSENT, number_or_text, number_with_unit
from gateway.settings.declaration import check

FIELDS_MAX = 64
"""Readings of one object or line; further ones are ignored."""

DEPTH_MAX = 3
"""Nesting of objects; deeper ones are ignored."""

NOT_READINGS = frozenset({
    *("node", "id", "device", "name", "time", "timestamp", "ts", "unit", "seq", "sequence"),
})  # fmt: skip
"""Names whose values describe the others; a map can still make them readings."""

UNIT_OF = re.compile(r"(.+?)[ _]?units?", re.IGNORECASE)
"""A name whose text is the unit of other values: `TempUnit`, `pressure_unit`."""

KEYS = ("quantity", "instance", "unit", "scale", "offset", "invert", "invalid")

IDENTITIES = ("id", "address", "addr", "mac")
"""Names of an object's identity, which does not depend on its place among others."""

IDENTITY = re.compile(r"[0-9A-Za-z]+(?:[:-]?[0-9A-Za-z]+)*")
IDENTITY_LEAST = 8
"""Letters and digits of an identity; a shorter one is only a number among others."""

NAMES_OF_OBJECTS = (*IDENTITIES, "name", "instance", "channel", "sensor")
"""Names of what tells the objects of a list apart."""

VALUE_KEYS = {"value", "unit", *TIME_NAMES}
"""Keys of an object that is one value."""

NUMBERED = re.compile(r".+[-_:]([0-9]{1,3}|(?:0x)?[0-9A-Fa-f]{2})")
"""The name of an object that is one of several: `DS18B20-2`, `BME280-76`, `switch:1`."""

ONE_OF_SEVERAL = re.compile(
    r"(.+?)_(?:(?:phase_)?[a-d]|l?[0-9]{1,2}|(?:_?(?:left|right|top|bottom|center|probe))+)"
)
"""The name of one of several, whose unit is that of the quantity: `power_left`, `power_phase_b`. In
`current_position` and `power_calibration` the first word is no quantity of the value."""

NUMBERS = (Kind.SAMPLE, Kind.TOTAL)
"""Kinds of quantities whose values are numbers."""

SEVERAL_MAX = 16
"""Most numbers or objects of a list that are values of several of one kind."""

NO_UNITS: Mapping[str, str] = {}


class Found(NamedTuple):
    """A reading, and its original name if that leaves the meaning of the number open.

    `path` is its position. An object with an identity (`Id`) has that as its name in it.
    """

    quantity: str
    value: Value
    unit: str | None = None
    unclear: str = ""
    instance: str = ""
    path: str = ""
    identity: str = ""
    """The identity of its object, which stays when others are added or removed."""

    @property
    def labels(self) -> Iterator[str]:
        """Labels that distinguish it from another of its quantity, the shortest first."""
        owner, _, name = self.path.rpartition(".")
        base = f"{owner}-{name}".replace(".", "-") if owner else name
        yield from (owner.replace(".", "-"), base) if owner else (base,)
        yield from (f"{base}-{number}" for number in range(2, FIELDS_MAX + 2))


class Leaf(NamedTuple):
    """A value in an object of objects, with its path and its own name.

    `source` is the path by identities, `instance` the instance that the names on it give.
    """

    path: str
    name: str
    value: Value
    source: str
    instance: str
    unit: str = ""
    """The unit that stands beside it."""
    listed: bool = False
    """Whether it is a number of a list, which only a known name makes a reading."""
    identity: str = ""
    """The identity of its object."""


@dataclass(frozen=True, slots=True)
class Field:
    """The meaning of one name; a number becomes value x scale + offset."""

    quantity: str
    unit: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    invert: bool = False
    """Whether true means false."""
    instance: str = ""
    """The instance."""
    invalid: tuple[float, ...] = ()
    """Numbers that a device sends where it has no value."""


@dataclass(frozen=True, slots=True)
class ReadingMap:
    """Names with their fields; None leaves a name out.

    Other names are looked up in the registry with its aliases. Unknown ones are quantities of their
    own, unless the map is `strict`. No unit is guessed: a number has the unit of the map, its
    source, its name or a name such as `TempUnit` beside it.
    """

    fields: Mapping[str, Field | None] = field(default_factory=dict)
    strict: bool = False

    def readings(
        self, values: Mapping[str, object], units: Mapping[str, str] = NO_UNITS
    ) -> list[Found]:
        """Return the numbers, truths and texts of an object, and of objects in it.

        `units` are the units of names that the source states; an empty one means no unit.
        """
        flat = list(_flat(values, DEPTH_MAX))
        stated = dict(_stated_units(flat))
        found: list[Found] = []
        for leaf in flat:
            if len(found) == FIELDS_MAX:
                break
            reading = self._reading(leaf, units)
            if reading is not None:
                placed = reading._replace(
                    instance=reading.instance or leaf.instance,
                    path=leaf.source,
                    identity="" if reading.instance else leaf.identity,
                )
                found.append(_with_unit(placed, stated, leaf.path))
        return found

    def names(self, name: str) -> bool:
        """Return whether a name is known to this map or the registry, or describes others."""
        known = name in self.fields or name.lower() in NOT_READINGS
        return known or instance_of(meaning(name)[0]) is not None

    def _reading(self, leaf: Leaf, units: Mapping[str, str]) -> Found | None:
        path, name, value = leaf.path, leaf.name, leaf.value
        for known in (path, name):
            if known in self.fields:
                meant = self.fields[known]
                if meant is None or (_is_number(value) and value in meant.invalid):
                    return None
                number, unit = _parsed_number(value, meant.quantity)
                moved = _moved(number, meant)
                return Found(meant.quantity, moved, meant.unit or unit, instance=meant.instance)
        if self.strict or name.lower() in NOT_READINGS:
            return None
        if isinstance(value, str) and _stem(name) in QUANTITIES:
            return None
        quantity, unit = meaning(name)
        of_registry = instance_of(quantity)
        if of_registry is None and unit is None:
            quantity = path
        if (leaf.listed and of_registry is None) or _is_no_event(of_registry, value):
            return None
        unit = unit or self._unit_of_several(quantity)
        value, stated = _parsed_number(value, quantity)
        stated = unit_name(leaf.unit or None) or stated
        own = units.get(name, stated or unit) if _is_number(value) else None
        quantity = binary_name(quantity) if isinstance(value, bool) else quantity
        return Found(quantity, value, own, path)

    def _unit_of_several(self, quantity: str) -> str | None:
        """Return the map's unit of `power` for `power_left` or `power_l1`."""
        match = ONE_OF_SEVERAL.fullmatch(quantity)
        meant = self.fields.get(match[1]) if match is not None else None
        plain = meant is not None and (meant.scale, meant.offset) == (1.0, 0.0)
        if meant is None or not plain or base_quantity(quantity) != base_quantity(meant.quantity):
            return None
        return meant.unit


def _is_no_event(quantity: Quantity | None, value: Value) -> bool:
    """Return whether a text says that an event is over, as zigbee2mqtt's empty one does."""
    return quantity is not None and quantity.kind is Kind.EVENT and value == ""


@check(
    "table",
    type="object",
    additionalProperties={
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"const": False},
            {
                "type": "object",
                "properties": {
                    "quantity": {"type": "string", "minLength": 1},
                    "instance": {"type": "string"},
                    "unit": {"type": "string"},
                    "scale": {"type": "number"},
                    "offset": {"type": "number"},
                    "invert": {"type": "boolean"},
                    "invalid": {"type": "array", "items": {"type": "number"}},
                },
                "required": ["quantity"],
                "additionalProperties": False,
            },
        ]
    },
)
def reading_map(value: object) -> ReadingMap:
    """Accept a table such as `{ temp = "temperature", t2 = { quantity = "power", scale = 0.1 } }`.

    `false` leaves a name out; `"*" = false` leaves out all names that the table lacks.
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
    quantity, unit, instance = (meant.get(key) for key in ("quantity", "unit", "instance"))
    if not isinstance(quantity, str) or not quantity:
        raise ValueError(f"{name}.quantity: a text must be given")
    if unit is not None and not isinstance(unit, str):
        raise ValueError(f"{name}.unit: only text is allowed")
    if not isinstance(instance, str | None) or instance in INSTANCES_RESERVED:
        raise ValueError(f"{name}.instance: a text, and not {' or '.join(INSTANCES_RESERVED)}")
    known, stated = (quantity_name(quantity), unit) if unit else meaning(quantity)
    scale, offset = _number(name, meant, "scale", 1.0), _number(name, meant, "offset", 0.0)
    invert = meant.get("invert", False)
    if not isinstance(invert, bool):
        raise ValueError(f"{name}.invert: true or false")  # noqa: TRY004 - one error for all
    which = instance_name(instance or "")
    return Field(known, stated, scale, offset, invert, which, _invalid(name, meant))


def _invalid(name: str, table: Mapping[str, object]) -> tuple[float, ...]:
    numbers = table.get("invalid", [])
    if not isinstance(numbers, list):
        raise ValueError(f"{name}.invalid: a list of numbers such as [-127, 85]")  # noqa: TRY004 - one error for all
    return tuple(_number(name, {"invalid": each}, "invalid", 0.0) for each in numbers)


def _number(name: str, table: Mapping[str, object], key: str, default: float) -> float:
    number = table.get(key, default)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"{name}.{key}: only a finite number is allowed")
    return float(number)


def _flat(
    values: Mapping[str, object],
    depth: int,
    path: str = "",
    source: str = "",
    instance: str = "",
    identity: str = "",
) -> Iterator[Leaf]:
    """Yield each value with its path; `path` and `source` lead to `values`."""
    for name, value in values.items():
        if isinstance(value, dict):
            if _is_value(value):
                unit = str(value.get("unit") or "")
                place = f"{path}{name}.value", name, value["value"], f"{source}{name}", instance
                yield Leaf(*place, unit, identity=identity)
            elif depth > 1:
                own = identity_of(value)
                which = own if own and NUMBERED.fullmatch(name) else _number_of(name)
                yield from _flat(
                    value,
                    depth - 1,
                    f"{path}{name}.",
                    f"{source}{own or name}.",
                    which or instance,
                    own,
                )
        elif isinstance(value, list):
            leaf = Leaf(f"{path}{name}", name, 0, f"{source}{name}", instance)
            yield from _several(leaf, value)
            yield from _objects(leaf, value, depth)
        elif isinstance(value, bool | int | float | str):
            place = f"{path}{name}", name, value, f"{source}{name}", instance
            yield Leaf(*place, identity=identity)


def _several(leaf: Leaf, values: list[object]) -> Iterator[Leaf]:
    """Yield the numbers of a list, such as a meter's channels, as instances from 1 on."""
    if len(values) > SEVERAL_MAX:
        return
    for number, value in enumerate(values, 1):
        if isinstance(value, int | float) and not isinstance(value, bool):
            which = f"{leaf.instance}-{number}" if leaf.instance else f"{number}"
            source = f"{leaf.source}.{number}"
            yield leaf._replace(value=value, source=source, instance=which, listed=True)


def _objects(leaf: Leaf, values: list[object], depth: int) -> Iterator[Leaf]:
    """Yield the values of objects in a list; each is an instance by its identity, name or place."""
    if depth == 1 or len(values) > SEVERAL_MAX:
        return
    for number, value in enumerate(values, 1):
        if isinstance(value, dict):
            which = identity_of(value) or _named(value) or f"{number}"
            own = f"{leaf.instance}-{which}" if leaf.instance else which
            rest = {
                name: each for name, each in value.items() if name.lower() not in NAMES_OF_OBJECTS
            }
            yield from _flat(rest, depth - 1, f"{leaf.path}.", f"{leaf.source}.{which}.", own)


def _is_value(values: Mapping[str, object]) -> bool:
    """Return whether an object is one value with its unit: `{"value": 21.5, "unit": "°C"}`."""
    scalar = isinstance(values.get("value"), bool | int | float | str)
    return scalar and set(values) <= VALUE_KEYS


def _named(values: Mapping[str, object]) -> str:
    """Return the name or number by which an object tells itself from others beside it."""
    for name, value in values.items():
        is_name = isinstance(value, int | str) and not isinstance(value, bool)
        if name.lower() in NAMES_OF_OBJECTS and is_name:
            return instance_name(str(value))
    return ""


def identity_of(values: Mapping[str, object]) -> str:
    """Return the identity of an object, such as a hardware address; empty if it has none."""
    for name, value in values.items():
        known = name.lower() in IDENTITIES and isinstance(value, str)
        if known and len(str(value)) >= IDENTITY_LEAST and IDENTITY.fullmatch(str(value)):
            return instance_name(str(value).replace(":", "").lower())
    return ""


def _number_of(name: str) -> str:
    """Return the name of an object that is one of several; number 0 needs none."""
    match = NUMBERED.fullmatch(name)
    if match is None or not match[1].strip("0"):
        return ""
    return instance_name(name)


def _stated_units(flat: Iterable[Leaf]) -> Iterator[tuple[str, str]]:
    """Yield the quantities with a unit beside them, and that unit; that of all has no name."""
    for leaf in flat:
        quantity = _stem(leaf.name)
        unit = unit_name(leaf.value) if isinstance(leaf.value, str) else None
        if leaf.path.lower() == "unit" and unit is not None:
            yield "", unit
        if quantity in QUANTITIES and _fitting(QUANTITIES[quantity], unit):
            yield quantity, str(unit)


def _fitting(quantity: Quantity, unit: str | None) -> str | None:
    """Return a unit if the quantity can have it."""
    return unit if unit in quantity.units else None


def _stem(name: str) -> str:
    """Return the quantity that a unit's name belongs to, empty for none."""
    match = UNIT_OF.fullmatch(name)
    return "" if match is None else quantity_name(match[1])


def _with_unit(found: Found, stated: Mapping[str, str], path: str) -> Found:
    """Return a reading with the unit beside it, or with its unclear name."""
    if found.unit is not None or not _is_number(found.value):
        unit = found.unit if _is_number(found.value) else None
        return found._replace(unit=unit or None, unclear="")
    known = base_quantity(found.quantity)
    if known is None:
        return found  # unclear unless the map names it
    unit = stated.get(known.name) or _fitting(known, stated.get(""))
    return found._replace(unit=unit, unclear=path if known.units and unit is None else "")


def _parsed_number(value: Value, quantity: str) -> tuple[Value, str | None]:
    """Return the number in a text of a numeric quantity, and the unit that it names.

    It is NaN for a text such as `-`, which means no value, or `1.234,5`, which is no number. Words
    such as `on` stay.
    """
    known = instance_of(quantity) if isinstance(value, str) else None
    if not isinstance(value, str) or known is None or known.kind not in NUMBERS:
        return value, None
    text = value.strip()
    number = number_or_text(text)
    if not isinstance(number, str):
        return number, None
    with_unit = number_with_unit(text)
    if with_unit is not None and with_unit[1] in known.units:
        return with_unit
    if text.lower() in ABSENT or any(each.isdigit() for each in text):
        return math.nan, None
    return value, None


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
"""Only the registry's names."""
