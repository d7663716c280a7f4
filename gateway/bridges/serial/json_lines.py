"""JSON lines on a serial line: bytes in any pieces to lines, and a line to its reading.

docs/serial-protocol.md, section "JSON lines"; this form has no acknowledgement.
"""

import json

from gateway.bridges.readings.reading import Reading, RefusedReadingError, Value
from gateway.bridges.serial.splitter import Splitter
from gateway.counters import Counters

LINE_MAX = 1024
"""Bytes of a line: stops a device that never ends one from filling the memory."""


class NoReadingError(ValueError):
    """A line that is no JSON object."""


class LineDecoder:
    """Finds the lines in what a port delivers; counts what is too long to be one."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._splitter = Splitter(b"\n", LINE_MAX)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` ends, without line ends and blanks, empty ones left out."""
        before = self._splitter.skipped
        lines = [line.strip() for line in self._splitter.feed(data)]
        if self._splitter.skipped > before:
            self._counters.add("tidegate/serial/garbage_bytes", self._splitter.skipped - before)
        return [line for line in lines if line]


def parse_line(line: bytes, node: str, now: int) -> Reading:
    """Return the reading of a line; `node` and `now` (ms since 1970) stand in for absent keys.

    Raises NoReadingError when the line is no JSON object, RefusedReadingError when a key has a
    type or value that is not allowed.
    """
    try:
        fields = json.loads(line.decode())
    except (ValueError, RecursionError):  # the latter from a line of brackets
        raise NoReadingError("not JSON") from None
    if not isinstance(fields, dict):
        raise NoReadingError(f"a JSON {type(fields).__name__}, not an object")
    return Reading(
        _text("node", _given(fields, "node", node)),
        _text("quantity", fields.get("quantity")),
        _value(fields.get("value")),
        _text("unit", fields["unit"]) if fields.get("unit") not in (None, "") else None,
        _time(_given(fields, "time", now)),
    )


def _given(fields: dict[str, object], key: str, default: object) -> object:
    """Return what the line says of `key`; absent and null are the same."""
    value = fields.get(key)
    return default if value is None else value


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise RefusedReadingError(f"{key} {value!r}: only text is allowed")
    return value


def _value(value: object) -> Value:
    if not isinstance(value, (bool, int, float, str)):
        raise RefusedReadingError(f"value {value!r}: only a number, true, false or text is allowed")
    return value


def _time(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RefusedReadingError(f"time {value!r}: only whole milliseconds are allowed")
    return value
