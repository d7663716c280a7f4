"""What can be shown of the payload of a sensor's message, whatever its bytes are."""

import json
from dataclasses import dataclass

from tui.payload import MOST_PARSED, seconds_of, text_of
from tui.text import printable, size

MOST_TEXT = 64
"""characters of a value that is not a number"""
MOST_UNIT = 12
"""characters of a unit"""
LARGEST_DRAWN = 1e300
"""a number; the difference of two larger ones may not be finite"""
HEAD_SHOWN = 8
"""bytes of a binary payload written as hexadecimal digits"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A sensor's value as text, with its number, unit and time where the payload gives them."""

    text: str
    number: float | None = None
    unit: str = ""
    time: float | None = None
    """seconds since 1970, by the sender's clock"""


def read(payload: bytes) -> Reading:
    """Return what to show of any payload; never raises.

    Understands `{"value": …, "unit": …, "time": ms}` (docs/serial-protocol.md) and a bare JSON
    value; other text is shown as it is, and other bytes by their number and the first of them.
    """
    if not payload:
        return Reading("(empty)")
    if len(payload) > MOST_PARSED:
        return Reading(f"({size(len(payload))})")
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return Reading(f"({size(len(payload))}) {payload[:HEAD_SHOWN].hex(' ')}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return Reading(printable(text, MOST_TEXT))
    if isinstance(document, dict) and "value" in document:
        return _from_object(document)
    if isinstance(document, dict | list):
        return Reading(printable(text, MOST_TEXT))
    return Reading(*_value(document))


def _from_object(document: dict[str, object]) -> Reading:
    text, number = _value(document["value"])
    return Reading(text, number, text_of(document, "unit", MOST_UNIT), seconds_of(document, "time"))


def _value(value: object) -> tuple[str, float | None]:
    """Return a JSON value as text and, if it can be plotted, as a number."""
    if isinstance(value, str):
        return printable(value, MOST_TEXT), None
    if isinstance(value, bool):
        return ("true" if value else "false"), float(value)
    if isinstance(value, int | float):
        return _number(value)
    if value is None:
        return "null", None
    return ("{…}" if isinstance(value, dict) else "[…]"), None


def _number(value: float) -> tuple[str, float | None]:
    try:
        number = float(value)
    except OverflowError:
        return "(too large)", None
    drawn = number if abs(number) <= LARGEST_DRAWN else None  # NaN compares as false
    return f"{number:.7g}", drawn
