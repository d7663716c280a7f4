"""One entry of a Modbus register map: where a value is, what it means, when it is polled."""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.bridges.readings.number_forms import invalid, is_marker, shortest
from gateway.bridges.readings.reading import Value, series_topic
from gateway.bridges.settings import bridge_name, instance, key, quantity
from gateway.bridges.supervision.control import BUTTON, SWITCH, Control, parse_number
from gateway.settings.checks import (
    LARGEST,
    any_number,
    boolean,
    number,
    one_of,
    text,
    whole_number,
)
from gateway.settings.declaration import Mistake, check
from gateway.settings.quantities import duration

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

FLOATS_MAX = 1e9
"""The highest value that can be written as a float, where no limit is configured."""

OPTIONS_MAX = 64

SCALE_MAX = 100
"""Registers from a value to that with its scale: both are in one request."""

SCALES = 10
"""Largest power of ten of a scale; SunSpec's marker of no scale is far beyond it."""

REGISTERS_MAX = 1_000
"""Entries of one bridge."""


@check("table of numbers", type="object", additionalProperties={"type": "number"})
def options(value: object) -> tuple[tuple[str, float], ...]:
    """Accept names of values, such as `{ off = 0, heat = 1 }`."""
    if not isinstance(value, dict) or not 1 <= len(value) <= OPTIONS_MAX:
        raise ValueError(f"1 to {OPTIONS_MAX} names with numbers, such as {{ off = 0, heat = 1 }}")
    numbers = {str(name): float(any_number(each)) for name, each in value.items()}
    if len(set(numbers.values())) < len(numbers):
        raise ValueError("a number of its own for each name")
    return tuple(numbers.items())


@dataclass(frozen=True, slots=True)
class Register:
    """A value of a device, and its interval."""

    address: int = key(
        whole_number(0, 65_535), 'address, from 0; "register 40001" of a manual is holding 0'
    )
    quantity: str = key(quantity, "what it measures")
    instance: str | None = key(
        instance, "distinguishes it from others of its quantity at the node, such as `l1`", None
    )
    device: int = key(whole_number(0, 255), "the device's (unit) identifier", 1)
    table: str = key(
        one_of(*TABLES), "holding or input registers, coils or discrete inputs", "holding"
    )
    type: str = key(one_of(*LAYOUTS), "type of the number", "uint16")
    word_order: str = key(
        one_of("big", "little"),
        "which end comes first",
        "big",
    )
    scale: float = key(any_number, "value = raw x `scale` + `offset`", 1.0)
    offset: float = key(any_number, "see `scale`", 0.0)
    scale_address: int | None = key(
        whole_number(0, 65_535),
        "address of the power of ten that scales the raw number, behind it, as in SunSpec",
        None,
    )
    unit: str | None = key(text, "unit of the reading", None)
    node: str | None = key(bridge_name, "node of the reading; by default the bridge's name", None)
    invalid: tuple[float, ...] | str = key(
        invalid,
        'raw numbers that mean "no value", such as `[0x80000000]`; `"usual"`: the lowest '
        "signed, the highest unsigned, NaN",
        (),
    )
    interval: float = key(duration(0.05, 86_400), "time between two requests", 10.0)
    deadband: float | None = key(
        number(0, LARGEST), "a value is published only when it differs by more", None
    )
    refresh: float = key(
        duration(1, 604_800), "time after which it is published in any case", 3600.0
    )
    minimum: float | None = key(
        any_number, "lowest value that may be written; by default that of the `type`", None
    )
    maximum: float | None = key(
        any_number,
        "highest value that may be written; by default that of the `type`",
        None,
    )
    options: tuple[tuple[str, float], ...] = key(
        options,
        "names of its values, such as `{ off = 0, heat = 1 }`",
        (),
        shown="-",
    )
    press: float | None = key(
        any_number,
        "makes it a button: each message to `…/set` writes this value; it is not read",
        None,
    )
    writable: bool = key(
        boolean,
        "a message to `sensors/<node>/<quantity>/set` (a number, `on`, `off`, or "
        '`{"value":…}`) is written, and read back',
        default=False,
    )

    def mistakes(self, _given: frozenset[str]) -> Iterator[Mistake]:
        """Yield contradictions between the keys."""
        if self.scale == 0:
            yield "scale", self.scale, "anything but 0"
        if self.is_written and self.table in ("discrete", "input"):
            name = "writable" if self.writable else "press"
            problem = "only coils and holding registers can be written"
            yield name, getattr(self, name), problem
        if self.is_bit and self.options:
            yield "options", dict(self.options), "a coil is on or off"
        if self.scale_address is not None:
            yield from self._mistakes_of_scale(self.scale_address - self.address)
        if self.scale and not self.is_bit:
            yield from self._mistakes_of_limits()
        if self.address + self.size > 65_536:
            yield "address", self.address, f"{self.type} does not end at 65535 or before"

    def _mistakes_of_scale(self, distance: int) -> Iterator[Mistake]:
        if self.is_bit or self.is_written:
            yield "scale_address", self.scale_address, "only for registers that are not written"
        elif not self._own_size <= distance <= SCALE_MAX:
            problem = f"a register behind the value, at most {SCALE_MAX} from it"
            yield "scale_address", self.scale_address, problem

    def _mistakes_of_limits(self) -> Iterator[Mistake]:
        if self.least > self.most:
            yield "minimum", self.minimum, f"at most {self.most:g}"
        values: dict[str, float | None] = {"press": self.press, **dict(self.options)}
        for name, value in values.items():
            try:
                self.words(0.0 if value is None else value)
            except ValueError as error:
                yield "press" if name == "press" else f"options.{name}", value, str(error)

    @property
    def is_written(self) -> bool:
        """Whether messages can write to it."""
        return self.writable or self.press is not None

    @property
    def least(self) -> float:
        """The lowest value that can be written."""
        return self._lowest(self.minimum, 0)

    @property
    def most(self) -> float:
        """The highest value that can be written."""
        return self._lowest(self.maximum, 1)

    def _lowest(self, given: float | None, place: int) -> float:
        if given is not None:
            return given
        layout = LAYOUTS[self.type]
        bits = 8 * struct.calcsize(f">{layout}")
        limits = (-FLOATS_MAX, FLOATS_MAX)
        if layout.islower() and layout not in "fd":
            limits = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
        elif layout not in "fd":
            limits = (0.0, 2.0**bits - 1)
        return sorted(round(each * self.scale + self.offset, 9) for each in limits)[place]

    @property
    def control(self) -> Control:
        """Its control for Home Assistant."""
        if self.press is not None:
            return BUTTON
        if self.is_bit:
            return SWITCH
        if self.options:
            return Control("select", options=tuple(dict(self.options)))
        step = 0.001 if self.type.startswith("float") else abs(self.scale)
        return Control("number", self.least, self.most, step, self.unit)

    def number_of(self, payload: bytes) -> float:
        """Return a payload's number: a number, `on`, `off` or an option; raise ValueError."""
        if self.press is not None:
            return self.press
        value = parse_number(payload, dict(self.options))
        if self.is_bit and value not in (0, 1):
            raise ValueError(f"{value:g}: on, off, 1 or 0 is allowed")
        if not self.is_bit and not self.least <= value <= self.most:
            raise ValueError(f"{value:g}: {self.least:g} to {self.most:g} are allowed")
        return value

    def topic(self, bridge: str) -> str:
        """Return the topic of its readings for a bridge with this name."""
        return series_topic(self.node or bridge, self.quantity, self.instance or "")

    @property
    def is_bit(self) -> bool:
        """True for a single bit."""
        return self.table in BIT_TABLES

    @property
    def size(self) -> int:
        """Number of registers or bits, up to that with the scale."""
        if self.scale_address is not None:
            return max(self.scale_address + 1 - self.address, self._own_size)
        return self._own_size

    @property
    def _own_size(self) -> int:
        return 1 if self.is_bit else struct.calcsize(f">{LAYOUTS[self.type]}") // 2

    def value(self, words: Sequence[int]) -> Value:
        """Return the scaled value of these registers; a whole number stays one."""
        if self.is_bit:
            return bool(words[0])
        raw: float = struct.unpack(f">{LAYOUTS[self.type]}", self._packed(words))[0]
        if self.type == "float32":
            raw = shortest(raw)
        if self.scale_address is not None:
            raw = round(raw * 10.0 ** self._exponent(words), 9)
        plain = self.scale == 1.0 and self.offset == 0.0
        value = raw if plain else round(raw * self.scale + self.offset, 9)
        return next((name for name, each in self.options if each == value), value)

    def is_invalid(self, words: Sequence[int]) -> bool:
        """Return whether these registers are a marker of no value."""
        if self.scale_address is not None and not -SCALES <= self._exponent(words) <= SCALES:
            return True
        if self.is_bit or not self.invalid:
            return False
        return is_marker(self.invalid, LAYOUTS[self.type], self._packed(words))

    def _exponent(self, words: Sequence[int]) -> int:
        """Return the power of ten behind the value, a signed number."""
        return (words[self.size - 1] ^ 0x8000) - 0x8000

    def _packed(self, words: Sequence[int]) -> bytes:
        """Return the bytes of the value in big-endian order."""
        own = words[: self._own_size]
        ordered = own if self.word_order == "big" else own[::-1]
        return struct.pack(f">{len(ordered)}H", *ordered)

    def words(self, value: float) -> list[int]:
        """Return the registers of a value; raise ValueError if it does not fit."""
        raw = (value - self.offset) / self.scale
        layout = LAYOUTS[self.type]
        try:
            packed = struct.pack(f">{layout}", raw if layout in "fd" else round(raw))
        except (struct.error, OverflowError, ValueError):
            raise ValueError(f"{value} does not fit {self.type}") from None
        words = list(struct.unpack(f">{self._own_size}H", packed))
        return words if self.word_order == "big" else words[::-1]


def is_news(register: Register, last: Value | None, value: Value) -> bool:
    """Return whether a value differs enough from the last published one."""
    if register.deadband is None or last is None:
        return True
    if isinstance(value, int | float) and isinstance(last, int | float):
        difference = abs(value - last)
        return math.isnan(difference) or difference > register.deadband
    return value != last
