"""The time of a reading, in the forms that nodes use."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

SECONDS_MAX = 100_000_000_000
"""A time below this is in seconds: as milliseconds it would be before 1973."""

UNREADABLE = 0
"""An unreadable time; it is treated like one of a clock that was never set."""

LATEST = 253_402_300_799_999
"""Milliseconds at the end of the year 9999."""

TIME_NAMES = ("time", "timestamp", "ts")
"""Names under which nodes give the time of a reading."""


def milliseconds(time: float) -> int:
    """Return a time since 1970 in milliseconds; it may be given in seconds."""
    return int(time * 1000 if abs(time) < SECONDS_MAX else time)


def time_of(value: object) -> int | None:
    """Return a node's time in milliseconds since 1970, None if it gives none.

    It may be in seconds or milliseconds, also as text, or in ISO 8601, as UTC if it has no zone.
    Anything else is UNREADABLE, so that the rest of a line counts.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return _of_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNREADABLE
    if not math.isfinite(value) or not 0 <= value <= LATEST:
        return UNREADABLE
    return milliseconds(value)


def _of_text(text: str) -> int:
    try:
        return time_of(float(text)) or UNREADABLE
    except ValueError:
        pass
    if ":" not in text and "T" not in text.upper():
        return UNREADABLE  # only a day is no time
    try:
        time = datetime.fromisoformat(text.upper())
        zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return max(round(zoned.timestamp() * 1000), UNREADABLE)
    except (ValueError, OverflowError):
        return UNREADABLE


def named_time(fields: Mapping[str, object]) -> int | None:
    """Return the time among named values."""
    names = [name for known in TIME_NAMES for name in fields if name.lower() == known]
    return time_of(fields[names[0]]) if names else None
