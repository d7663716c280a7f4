"""A reading: one checked value of one series, and its message (docs/use/readings.md)."""

import json
import math
from dataclasses import dataclass
from functools import lru_cache

NAME_MAX = 64
"""Bytes of a node's or quantity's name in UTF-8; together they stay far below a topic's 65,535."""

NOT_IN_NAMES = "/+#"
"""Characters with a meaning in a topic or a topic filter."""

UNIT_MAX = 32
"""Bytes of a unit in UTF-8."""

TIME_MAX = 253_402_300_799_999
"""Milliseconds since 1970 at the end of the year 9999, the last that every reader can show."""

INSTANCES_RESERVED = ("set", "answer")
"""Levels after `sensors/<node>/<quantity>` that are for commands and their answers."""

SERIES_MAX = 1_024
"""Series whose names were checked and joined; others are checked again each time."""

Value = bool | int | float | str

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class RefusedReadingError(ValueError):
    """A reading that can never be published: names the field, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A value that can be published on `sensors/<node>/<quantity>[/<instance>]`.

    `quality` says what is wrong with the value, and is empty if nothing is (docs/use/readings.md).
    `instance` distinguishes several of one quantity at a node, and is empty for the only one.
    `time` is milliseconds since 1970 (UTC). Raises RefusedReadingError for a value that is not
    finite, a time outside the years 1970 to 9999, and a name that is empty or too long. A name must
    not contain `/`, `+`, `#` or a character that MQTT text must not have.
    """

    node: str
    quantity: str
    value: Value
    unit: str | None
    time: int
    instance: str = ""
    quality: str = ""

    def __post_init__(self) -> None:
        _check_names(self.node, self.quantity, self.instance, self.unit)
        if isinstance(self.value, float):
            if not math.isfinite(self.value):
                raise RefusedReadingError(
                    f"value {self.value} of {self.quantity}: only finite numbers are allowed"
                )
        elif isinstance(self.value, str):
            _check_value(self.quantity, self.value)
        if not 0 <= self.time <= TIME_MAX:
            raise RefusedReadingError(f"time {self.time}: 0 to {TIME_MAX} are allowed")

    @property
    def topic(self) -> str:
        """The topic it is published on, which is the name of its series."""
        return series_topic(self.node, self.quantity, self.instance)

    @property
    def payload(self) -> bytes:
        """The reading as JSON, its only form; `unit` and `quality` are left out when empty."""
        fields: dict[str, Value] = {"value": self.value}
        if self.unit is not None:
            fields["unit"] = self.unit
        fields["time"] = self.time
        if self.quality:
            fields["quality"] = self.quality
        return _ENCODER.encode(fields).encode()

    def __str__(self) -> str:
        value = json.dumps(self.value, ensure_ascii=False)
        return f"{self.topic} {value}" if self.unit is None else f"{self.topic} {value} {self.unit}"


@lru_cache(SERIES_MAX)
def series_topic(node: str, quantity: str, instance: str = "") -> str:
    """Return the topic of a series."""
    suffix = f"/{instance}" if instance else ""
    return f"sensors/{node}/{quantity}{suffix}"


def instance_name(text: str) -> str:
    """Return a text as the name of an instance: `/`, `+`, `#` and similar characters become `-`."""
    safe = "".join(
        "-" if each in NOT_IN_NAMES or _is_forbidden(each) else each for each in text.strip()
    )
    name = safe.encode()[:NAME_MAX].decode(errors="ignore")
    return f"{name}-" if name in INSTANCES_RESERVED else name


@lru_cache(SERIES_MAX)
def _check_names(node: str, quantity: str, instance: str, unit: str | None) -> None:
    _check_text("node", node, NAME_MAX, NOT_IN_NAMES)
    _check_text("quantity", quantity, NAME_MAX, NOT_IN_NAMES)
    if instance:
        _check_text("instance", instance, NAME_MAX, NOT_IN_NAMES)
        if instance in INSTANCES_RESERVED:
            raise RefusedReadingError(f"instance {instance!r}: it is a level of commands")
    if unit is not None:
        _check_text("unit", unit, UNIT_MAX)


def _check_text(field: str, text: str, limit: int, forbidden: str = "") -> None:
    # no forbidden character is printable, so that most texts need no second check
    if not text.isprintable() and any(map(_is_forbidden, text)):
        raise RefusedReadingError(f"{field} {text!r}: control characters are not allowed")
    size = len(text.encode())
    if not 1 <= size <= limit:
        raise RefusedReadingError(f"{field} {text!r} has {size} bytes: 1 to {limit} are allowed")
    for each in forbidden:
        if each in text:
            raise RefusedReadingError(f"{field} {text!r}: {each!r} is not allowed")


def _is_forbidden(character: str) -> bool:
    """Return whether it is a control, surrogate or non-character ([MQTT-1.5.4-1], 1.5.4)."""
    code = ord(character)
    return (
        code < 0x20
        or 0x7F <= code < 0xA0
        or 0xD800 <= code < 0xE000
        or 0xFDD0 <= code < 0xFDF0
        or code & 0xFFFE == 0xFFFE
    )


def _check_value(quantity: str, value: str) -> None:
    if any(0xD800 <= ord(character) < 0xE000 for character in value):
        raise RefusedReadingError(
            f"value {value!r} of {quantity}: half of a surrogate pair is not allowed"
        )
