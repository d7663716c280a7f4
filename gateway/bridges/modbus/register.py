"""One entry of a Modbus register map: where a value lies, what it means, when it is asked for."""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.bridges.readings.number_forms import invalid, is_marker, shortest
from gateway.bridges.readings.reading import Value, series_topic
from gateway.bridges.settings import bridge_name, instance, key
from gateway.config.checks import boolean, number, one_of, text, whole_number
from gateway.config.declaration import Mistake

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
    """A value of a device, and when it is asked for."""

    address: int = key(
        whole_number(0, 65_535), 'where it lies, from 0; "register 40001" of a manual is holding 0'
    )
    quantity: str = key(bridge_name, "what it measures")
    instance: str | None = key(
        instance, "tells it from others of its quantity at the node, such as `l1`", None
    )
    device: int = key(whole_number(0, 255), "the device's (unit) identifier", 1)
    table: str = key(
        one_of(*TABLES), "`holding` or `input` registers, `coil` or `discrete` inputs", "holding"
    )
    type: str = key(one_of(*LAYOUTS), f"{', '.join(f'`{each}`' for each in LAYOUTS)}", "uint16")
    word_order: str = key(
        one_of("big", "little"),
        "whether the `big` or the `little` end comes first",
        "big",
    )
    scale: float = key(number(-1e12, 1e12), "value = raw x scale + offset", 1.0)
    offset: float = key(number(-1e12, 1e12), "see `scale`", 0.0)
    unit: str | None = key(text, "unit of the reading", None)
    node: str | None = key(bridge_name, "node of the reading; the bridge's name", None)
    invalid: tuple[float, ...] | str = key(
        invalid,
        'raw numbers that mean "no value", such as `[0x80000000]`, or `"usual"` for those of the'
        " `type`",
        (),
    )
    interval: float = key(number(0.05, 86_400), "seconds between two questions", 10.0)
    deadband: float | None = key(
        number(0, 1e12), "a value is published only when it differs by more", None
    )
    refresh: float = key(
        number(1, 604_800), "seconds after which it is published whatever it is", 3600.0
    )
    writable: bool = key(
        boolean,
        "what is published to `sensors/<node>/<quantity>/set` (a number, `on`, `off`, or"
        ' `{"value":…}`) is written, and read back at once',
        default=False,
    )

    def mistakes(self, _given: frozenset[str]) -> Iterator[Mistake]:
        """Give what does not go together."""
        if self.scale == 0:
            yield "scale", self.scale, "anything but 0"
        if self.writable and self.table in ("discrete", "input"):
            yield "writable", self.writable, "only coils and holding registers can be written"
        if self.address + self.size > 65_536:
            yield "address", self.address, f"{self.type} does not end at 65535 or before"

    def topic(self, bridge: str) -> str:
        """Return the topic of its readings by a bridge of this name."""
        return series_topic(self.node or bridge, self.quantity, self.instance or "")

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
        raw: float = struct.unpack(f">{LAYOUTS[self.type]}", self._packed(words))[0]
        if self.type == "float32":
            raw = shortest(raw)
        if self.scale == 1.0 and self.offset == 0.0:
            return raw
        return round(raw * self.scale + self.offset, 9)

    def is_invalid(self, words: Sequence[int]) -> bool:
        """Return whether these registers say that the device has no value."""
        if self.is_bit or not self.invalid:
            return False
        return is_marker(self.invalid, LAYOUTS[self.type], self._packed(words))

    def _packed(self, words: Sequence[int]) -> bytes:
        """Return the bytes of registers, the big end first."""
        ordered = words if self.word_order == "big" else words[::-1]
        return struct.pack(f">{len(ordered)}H", *ordered)

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


def is_news(register: Register, last: Value | None, value: Value) -> bool:
    """Return whether a value differs enough from the one that was published last."""
    if register.deadband is None or last is None:
        return True
    if isinstance(value, int | float) and isinstance(last, int | float):
        difference = abs(value - last)
        return math.isnan(difference) or difference > register.deadband
    return value != last
