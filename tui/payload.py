"""Payloads of any bytes read as text, a count or a JSON object; nothing here raises."""

import json
import re
from collections.abc import Mapping

from tui.text import printable

MOST_DIGITS = 19
"""digits of a count"""
DECIMAL = re.compile(rb"-?[0-9]+(\.[0-9]+)?")
MOST_PARSED = 8_192
"""bytes of a document that is parsed; a longer one is not a document"""
MOST_LISTED = 131_072
"""bytes of an array that is parsed"""
LAST_TIME = 253_402_300_799_000
"""milliseconds since 1970 at the end of the year 9999"""


def as_text(payload: bytes, limit: int) -> str:
    """Return the payload as one printable line of at most `limit` characters."""
    return printable(payload[: 4 * limit + 4].decode(errors="replace"), limit)


def as_number(payload: bytes) -> float | None:
    """Return a number of decimal digits, with or without a fraction, or None."""
    if len(payload) > MOST_DIGITS or not DECIMAL.fullmatch(payload):
        return None
    return float(payload) if b"." in payload else int(payload)


def as_object(payload: bytes) -> dict[str, object] | None:
    """Return a JSON object, or None if the payload is anything else."""
    if len(payload) > MOST_PARSED:
        return None
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def as_objects(payload: bytes) -> list[dict[str, object]]:
    """Return the objects of a JSON array; none if the payload is anything else."""
    if len(payload) > MOST_LISTED:
        return []
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        return []
    return (
        [each for each in document if isinstance(each, dict)] if isinstance(document, list) else []
    )


def text_of(document: Mapping[str, object], key: str, limit: int) -> str:
    """Return the text under `key` as one printable line; empty when there is none."""
    value = document.get(key)
    return printable(value, limit) if isinstance(value, str) else ""


def seconds_of(document: Mapping[str, object], key: str) -> float | None:
    """Return the milliseconds since 1970 under `key` as seconds, or None."""
    time = document.get(key)
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time <= LAST_TIME:
        return None
    return time / 1_000
