"""A payload as text and as JSON (where-language 6.3)."""

import json
import math
import re
from itertools import accumulate
from typing import Any, Final, NoReturn

from gateway.routing.where.conversions import Number, read_integer
from gateway.routing.where.limits import JSON_BYTES, JSON_LEVELS

NOT_JSON: Final[Any] = object()
"""Stands for the value of a payload that is not JSON; no step leads anywhere from it."""

_WHITE_SPACE: Final = " \t\r\n"

_LONGEST_SHORT_INTEGER: Final = 18
"""A token of so many characters is an INTEGER without a look at its value."""

_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|\\u(?P<unpaired>[dD][89a-fA-F])|\\.",
)
_NOT_A_BRACKET: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^][{}"]++')
_LEVEL_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def decode_payload(payload: bytes) -> str | None:
    """Decode UTF-8; None if `payload` is not well-formed or longer than is looked at."""
    if len(payload) > JSON_BYTES:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def parse_json(text: str) -> Any:
    """Give the value of a whole RFC 8259 text, NOT_JSON if `text` is none.

    An INTEGER arrives as int and every other number as float; strings are not yet held against
    the STRING limit.
    """
    text = text.strip(_WHITE_SPACE)
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return NOT_JSON
    if end < len(text) or _has_unpaired_surrogate(text) or _is_too_deep(text):
        return NOT_JSON
    return value


def _integer(token: str) -> Number:
    if len(token) <= _LONGEST_SHORT_INTEGER:
        return int(token)
    number = read_integer(token)
    return _outside_range(token) if number is None else number


def _real(token: str) -> float:
    number = float(token)
    return number if math.isfinite(number) else _outside_range(token)


def _outside_range(token: str) -> NoReturn:
    raise ValueError(f"number of {len(token)} characters outside the binary64 range")


def _constant(token: str) -> Any:
    raise ValueError(f"{token} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_constant)


def _has_unpaired_surrogate(text: str) -> bool:
    """Look for what the decoder lets through; `text` is otherwise known to be JSON."""
    if "\\ud" not in text and "\\uD" not in text:
        return False
    return any(escape["unpaired"] for escape in _ESCAPE.finditer(text))


def _is_too_deep(text: str) -> bool:
    """Count the levels exactly: how deep the decoder gets depends on the stack it starts from."""
    if len(text) <= 2 * JSON_LEVELS or text.count("[") + text.count("{") <= JSON_LEVELS:
        return False
    brackets = _NOT_A_BRACKET.sub("", text)
    return max(accumulate(map(_LEVEL_STEP.__getitem__, brackets)), default=0) > JSON_LEVELS
