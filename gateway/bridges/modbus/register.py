"""One entry of a Modbus register map: where a value lies, what it means, when it is asked for."""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.bridges.readings.reading import Value
from gateway.bridges.settings import bridge_name
from gateway.config.checks import boolean, number, one_of, text, whole_number

TABLES = ("coil", "discrete", "input", "holding")
BIT_TABLES = ("coil", "discrete")

LAYOUTS = {
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}

REGISTERS_MAX = 1_000
"""Entries of one bridge."""


@dataclass(frozen=True, slots=True)
class Register:
    """A value of a device: `address` counts from 0, `interval` is seconds between two questions."""

    address: int
    quantity: str
    device: int = 1
    table: str = "holding"
    type: str = "uint16"
    word_order: str = "big"
    scale: float = 1.0
    offset: float = 0.0
    unit: str | None = None
    node: str | None = None
    interval: float = 10.0
    deadband: float | None = None
    refresh: float = 3600.0
    writable: bool = False

    @property
    def is_bit(self) -> bool:
        """True for what is true or false."""
        return self.table in BIT_TABLES

    @property
    def size(self) -> int:
        """How many registers or bits it takes."""
        return 1 if self.is_bit else struct.calcsize(f">{LAYOUTS[self.type]}") // 2

    def value(self, words: Sequence[int]) -> Value:
        """Return the value of these registers, scaled; a whole number stays one."""
        if self.is_bit:
            return bool(words[0])
        ordered = words if self.word_order == "big" else words[::-1]
        packed = struct.pack(f">{len(ordered)}H", *ordered)
        raw: float = struct.unpack(f">{LAYOUTS[self.type]}", packed)[0]
        if self.scale == 1.0 and self.offset == 0.0:
            return raw
        return round(raw * self.scale + self.offset, 9)

    def words(self, value: float) -> list[int]:
        """Return the registers of a value; raise ValueError if it does not fit."""
        raw = (value - self.offset) / self.scale
        layout = LAYOUTS[self.type]
        try:
            packed = struct.pack(f">{layout}", raw if layout in "fd" else round(raw))
        except (struct.error, OverflowError, ValueError):
            raise ValueError(f"{value} does not fit {self.type}") from None
        words = list(struct.unpack(f">{self.size}H", packed))
        return words if self.word_order == "big" else words[::-1]


CHECKS: dict[str, Callable[[object], Any]] = {
    "address": whole_number(0, 65_535),
    "quantity": bridge_name,
    "device": whole_number(0, 255),
    "table": one_of(*TABLES),
    "type": one_of(*LAYOUTS),
    "word_order": one_of("big", "little"),
    "scale": number(-1e12, 1e12),
    "offset": number(-1e12, 1e12),
    "unit": text,
    "node": bridge_name,
    "interval": number(0.05, 86_400),
    "deadband": number(0, 1e12),
    "refresh": number(1, 604_800),
    "writable": boolean,
}


def register_map(value: object) -> tuple[Register, ...]:
    """Accept `[[modbus.register]]` tables."""
    if not isinstance(value, list) or not value or len(value) > REGISTERS_MAX:
        raise ValueError(f"1 to {REGISTERS_MAX} tables [[modbus.register]]")
    return tuple(_register(place, table) for place, table in enumerate(value))


def _register(place: int, table: object) -> Register:
    if not isinstance(table, dict):
        raise ValueError(f"register[{place}]: a table")  # noqa: TRY004 - one error for every bad setting
    given: dict[str, Any] = {}
    for key, value in table.items():
        if key not in CHECKS:
            raise ValueError(f"register[{place}].{key}: there are {', '.join(sorted(CHECKS))}")
        try:
            given[key] = CHECKS[key](value)
        except ValueError as error:
            raise ValueError(f"register[{place}].{key}: {error}") from error
    for key in ("address", "quantity"):
        if key not in given:
            raise ValueError(f"register[{place}].{key}: must be given")
    register = Register(**given)
    _check(register, f"register[{place}]")
    return register


def _check(register: Register, place: str) -> None:
    if register.scale == 0:
        raise ValueError(f"{place}.scale: anything but 0")
    if register.writable and register.table in ("discrete", "input"):
        raise ValueError(f"{place}.writable: only coils and holding registers can be written")
    if register.address + register.size > 65_536:
        raise ValueError(f"{place}.address: {register.type} does not end at 65535 or before")


def is_news(register: Register, last: Value | None, value: Value) -> bool:
    """Return whether a value differs enough from the one that was published last."""
    if register.deadband is None or last is None:
        return True
    if isinstance(value, int | float) and isinstance(last, int | float):
        difference = abs(value - last)
        return math.isnan(difference) or difference > register.deadband
    return value != last
