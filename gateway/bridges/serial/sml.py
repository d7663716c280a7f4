"""SML, the protocol of most German electricity meters' optical ports, with a CRC-16.

BSI TR-03109-1, annex IV, "Smart Message Language", version 1.04: transport version 1, and the list
of values of a GetList response.
"""

from collections.abc import Iterator
from typing import Any

from gateway.bridges.serial import obis
from gateway.bridges.serial.sample import Measured, Telegram

ESCAPE = b"\x1b" * 4
START = ESCAPE + b"\x01" * 4
END = ESCAPE + b"\x1a"

TELEGRAM_MAX = 8_192
"""Bytes of a telegram."""

DEPTH_MAX = 16
"""Lists in lists."""

GET_LIST_RESPONSE = 0x0701
"""The body of a message that has values."""

ENTRY_FIELDS = 7
"""Fields of a value: name, status, time, unit, scaler, value, signature."""

UNITS = {27: "W", 29: "var", 28: "VA", 30: "Wh", 32: "varh", 33: "A", 35: "V", 44: "Hz", 8: "°"}
"""DLMS units (IEC 62056-62, table of units)."""


def crc16(data: bytes) -> int:
    """Return the CRC-16 of X.25 (DIN EN 62056-46)."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x8408 if crc & 1 else 0)
    return crc ^ 0xFFFF


class SmlDecoder:
    """Finds telegrams whose check is right."""

    def __init__(self) -> None:
        self.failed = 0
        self.skipped = 0
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Telegram]:
        """Yield the telegrams that `data` completes."""
        self._pending += data
        while (whole := self._next()) is not None:
            check = int.from_bytes(whole[-2:], "little")
            if crc16(whole[:-2]) != check:
                self.failed += 1
                continue
            content = whole[len(START) : -len(END) - 3].replace(ESCAPE * 2, ESCAPE)
            try:
                yield Telegram(tuple(_values(content)))
            except (ValueError, IndexError, TypeError):
                self.failed += 1
        if len(self._pending) > TELEGRAM_MAX:
            self.skipped += len(self._pending)
            self._pending.clear()

    def _next(self) -> bytes | None:
        """Return the next whole telegram with its escapes, None while there is none."""
        start = self._pending.find(START)
        if start < 0:
            return None
        self.skipped += start
        del self._pending[:start]
        place = len(START)
        while (escape := self._pending.find(ESCAPE, place)) >= 0:
            kind = bytes(self._pending[escape + 4 : escape + 8])
            if len(kind) < 4:
                return None
            if kind[:1] == b"\x1a":
                whole = bytes(self._pending[: escape + 8])
                del self._pending[: escape + 8]
                return whole
            if kind == START[4:]:  # the one before it was cut off
                self.failed += 1
                del self._pending[:escape]
                place = len(START)
                continue
            place = escape + 8 if kind == ESCAPE else escape + 1
        return None


def _values(content: bytes) -> Iterator[Measured]:
    place = 0
    while place < len(content):
        if content[place] == 0:  # the end of a message, or padding of the last word
            place += 1
            continue
        message, place = _read(content, place, 0)
        if not isinstance(message, list) or len(message) < 4:
            continue
        body = message[3]
        if isinstance(body, list) and len(body) == 2 and body[0] == GET_LIST_RESPONSE:
            for entry in body[1][4]:
                yield from _entry(entry)


def _entry(entry: Any) -> Iterator[Measured]:
    if not isinstance(entry, list) or len(entry) != ENTRY_FIELDS:
        return
    name, _, _, unit, scaler, value, _ = entry
    known = isinstance(name, bytes) and len(name) == 6 and isinstance(value, int)
    if not known or isinstance(value, bool) or name[5] not in (0, 255):
        return
    exponent = scaler if isinstance(scaler, int) else 0
    number = value * 10**exponent if exponent >= 0 else round(value * 10.0**exponent, -exponent)
    code = f"{name[2]}.{name[3]}.{name[4]}"
    measured = obis.of_electricity(code, number, UNITS.get(unit))
    if name[0] == 1 and measured is not None:
        yield measured


def _read(data: bytes, place: int, depth: int) -> tuple[Any, int]:
    """Return the element at a place, and the place after it; raise ValueError, IndexError."""
    if depth > DEPTH_MAX:
        raise ValueError(f"more than {DEPTH_MAX} lists in lists")
    first = data[place]
    kind, size, head = first & 0x70, first & 0x0F, 1
    while data[place + head - 1] & 0x80:
        size = size << 4 | data[place + head] & 0x0F
        head += 1
    if kind == 0x70:
        found, place = [], place + head
        for _ in range(size):
            each, place = _read(data, place, depth + 1)
            found.append(each)
        return found, place
    end = place + max(size, 1)
    content = data[place + head : end]
    if end > len(data) or len(content) != max(size - head, 0):
        raise ValueError("an element that is cut off")
    if kind == 0x00:
        return (None if first == 0x01 else content), end
    if kind == 0x40:
        return any(content), end
    if kind in (0x50, 0x60):
        return int.from_bytes(content, "big", signed=kind == 0x50), end
    raise ValueError(f"type {kind:#04x} is unknown")
