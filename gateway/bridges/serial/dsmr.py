"""DSMR P1: telegrams of Dutch, Belgian and other meters, followed by a CRC-16.

Netbeheer Nederland, "P1 Companion Standard", 5.0.2: the check covers all from `/` to `!`.
"""

import re
from collections.abc import Iterator

from gateway.bridges.serial import obis
from gateway.bridges.serial.sample import Telegram

TELEGRAM_MAX = 4_096
"""Bytes of a telegram; the standard allows 1,024 characters a line and some 30 lines."""

TELEGRAM = re.compile(rb"/[^!/]{3,}!([0-9A-Fa-f]{4}|)\r?\n")

CONTINUED = re.compile(r"\r?\n\(")
"""Between the two lines of a gas meter before version 4."""

VERSION_LINE = b":0.2.8("
"""Contained in telegrams of version 4 and later, which have a check."""

POLYNOMIAL = 0xA001


def crc16(data: bytes) -> int:
    """Return the CRC-16 of the standard (polynomial 0x8005 reflected, beginning with 0)."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


class DsmrDecoder:
    """Finds telegrams whose check is right; those before version 4 have none."""

    def __init__(self) -> None:
        self.failed = 0
        self.skipped = 0
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Telegram]:
        """Yield the telegrams that `data` completes."""
        self._pending += data
        while (match := TELEGRAM.search(self._pending)) is not None:
            whole, check, start = match[0], match[1], match.start()
            self.skipped += start
            del self._pending[: match.end()]
            body = whole[: whole.index(b"!") + 1]
            if (check or VERSION_LINE in body) and check.upper() != b"%04X" % crc16(body):
                self.failed += 1
                continue
            lines = CONTINUED.sub("(", body.decode("ascii", "replace")).splitlines()
            yield Telegram(tuple(obis.parse(lines)), obis.time_of(lines))
        if len(self._pending) > TELEGRAM_MAX:
            self.skipped += len(self._pending)
            self._pending.clear()
