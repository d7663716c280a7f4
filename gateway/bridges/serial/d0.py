"""D0, the optical port of electricity meters: readouts of IEC 62056-21.

A readout is `/`, the maker and the model, data lines and `!`. Meters that are asked put it between
STX and ETX, followed by a check byte (the exclusive-or of all bytes from after STX to ETX). Meters
that send unasked do not, and each of their lines has to be a data line.
"""

import re
from collections.abc import Iterator
from functools import reduce
from operator import xor

from gateway.bridges.serial import obis
from gateway.bridges.serial.sample import Telegram

READOUT_MAX = 8_192
"""Bytes of a readout."""

STX, ETX = b"\x02", b"\x03"

START = re.compile(rb"/[A-Za-z]{3}[0-9A-Za-z][^\r\n]{0,40}\r\n")
END = re.compile(rb"!\r?\n")


class D0Decoder:
    """Finds readouts whose check is right, or whose lines all are."""

    def __init__(self) -> None:
        self.failed = 0
        self.skipped = 0
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Telegram]:
        """Yield the readouts that `data` completes."""
        self._pending += bytes(byte & 0x7F for byte in data)  # 7 data bits, even on a line with 8
        while (readout := self._next()) is not None:
            lines = [line for line in readout.decode("ascii").split("\r\n") if line]
            if all(map(obis.LINE.fullmatch, lines)):
                yield Telegram(tuple(obis.parse(lines)))
            else:
                self.failed += 1
        if len(self._pending) > READOUT_MAX:
            self.skipped += len(self._pending)
            self._pending.clear()

    def _next(self) -> bytes | None:
        """Return the lines of the next whole readout, None while there is none."""
        while (start := START.search(self._pending)) is not None:
            end = END.search(self._pending, start.end())
            later = START.search(self._pending, start.end())
            if later is not None and (end is None or later.start() < end.start()):
                self._drop(later.start())  # the one before it was cut off
                self.failed += 1
                continue
            if end is None:
                return None
            body = bytes(self._pending[start.end() : end.start()])
            if not body.startswith(STX):
                self._drop(end.end(), start.start())
                return body.lstrip(b"\r\n")
            if len(self._pending) < end.end() + 2:
                return None
            checked = bytes(self._pending[start.end() + 1 : end.end() + 1])
            right = checked.endswith(ETX) and reduce(xor, checked) == self._pending[end.end() + 1]
            self._drop(end.end() + 2, start.start())
            if right:
                return body.removeprefix(STX)
            self.failed += 1
        return None

    def _drop(self, end: int, skipped: int = 0) -> None:
        self.skipped += skipped
        del self._pending[:end]
