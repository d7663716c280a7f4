"""The values of the language, their conversions and their comparison (where-language 4 and 5).

Python's `None` is NULL, `bool` BOOLEAN, `int` INTEGER, `float` REAL, `str` STRING, and `dict`
or `list` JSON. `bool` is a subclass of `int`, so exact types are tested throughout.
"""

import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final

from gateway.mqtt.message import INTEGER_HIGHEST, INTEGER_LOWEST

Number = int | float
Value = bool | int | float | str | list[Any] | dict[str, Any] | None

NUMERIC_STRING_CODE_POINTS: Final = 64
"""Longest text that TO_NUMBER reads; bounds the work of `int` for hostile digits."""

NUMBER_LITERAL: Final = r"(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?"
"""A number without sign; an INTEGER exactly if none of the groups matches."""

_NUMERIC_STRING: Final = re.compile(r"[+-]?" + NUMBER_LITERAL)
_INTEGER_DIGITS: Final = 19
"""An integer of more significant digits does not fit 64 bits."""

_TRUTH_WORDS: Final = {"true": True, "false": False}
_LONGEST_TRUTH_WORD: Final = 5


def in_64_bits(value: int) -> int | None:
    """Return `value` if it is an INTEGER, otherwise NULL."""
    return value if INTEGER_LOWEST <= value <= INTEGER_HIGHEST else None


def finite(value: float) -> float | None:
    """Return `value` if it is a REAL, otherwise NULL."""
    return value if math.isfinite(value) else None


def read_number(text: str) -> Number | None:
    """Read an optional sign and a number literal; NULL if `text` is none or would be infinite.

    Digits without anything else are an INTEGER if that fits, else the nearest REAL. Accepts any
    number of digits.
    """
    match = _NUMERIC_STRING.fullmatch(text)
    if match is None:
        return None
    digits = text.lstrip("+-0")
    if match.lastindex is None and len(digits) <= _INTEGER_DIGITS:  # `int` is slow for many more
        value = int(digits or "0")
        value = -value if text[0] == "-" else value
        if INTEGER_LOWEST <= value <= INTEGER_HIGHEST:
            return value
    return finite(float(text))


def to_number(value: Value) -> Number | None:
    """Convert by TO_NUMBER."""
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, str):
        return read_number(value) if len(value) <= NUMERIC_STRING_CODE_POINTS else None
    if isinstance(value, bool):
        return 1 if value else 0
    return None


def to_boolean(value: Value) -> bool | None:
    """Convert by TO_BOOLEAN."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value != 0
    if isinstance(value, str) and len(value) <= _LONGEST_TRUTH_WORD and value.isascii():
        return _TRUTH_WORDS.get(value.lower())
    return None


def to_string(value: Value) -> str | None:
    """Convert by TO_STRING; a REAL has no text form (where-language 5)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else None


Order = Callable[[Any, Any], bool]

ORDERS: Final[dict[str, Order]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Python's own orders fit: text by code points, int and float as exact values."""

MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`a < b` is `b > a`."""


def compare(order: Order, left: Value, right: Value) -> bool | None:
    """Compare two values of any type; None is NULL."""
    left_type, right_type = type(left), type(right)
    if left_type is right_type and (left_type is str or left_type is bool):
        return order(left, right)
    if (left_type is bool and right_type is str) or (left_type is str and right_type is bool):
        first: object = to_boolean(left)
        second: object = to_boolean(right)
    else:
        first, second = to_number(left), to_number(right)
    return None if first is None or second is None else order(first, second)
