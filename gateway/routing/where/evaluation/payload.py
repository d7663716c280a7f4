"""A payload as text and as JSON (where-language 6.3)."""

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any, Final

from gateway.routing.where.language.conversions import in_64_bits
from gateway.routing.where.language.limits import JSON_BYTES, JSON_LEVELS

NOT_JSON: Final[Any] = object()
"""Stands for the value of a payload that is not JSON; no step leads anywhere from it."""

_NOT_A_BRACKET: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^][{}"]++', re.DOTALL)
_LEVEL_STEP: Final = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))

_JSON_BYTES = JSON_BYTES  # compiled, C names that no other module sees
_JSON_LEVELS = JSON_LEVELS

_DIGITS_ALONE: Final = bytes(48 if byte in b"0123456789" else 0 for byte in range(256))
_LONG_NUMBER: Final = b"0" * 19
"""Digits of the shortest integer that may not fit 64 bits, as `_DIGITS_ALONE` translates them."""


def decode_payload(payload: bytes) -> str | None:
    """Decode UTF-8; None if `payload` is not well-formed or longer than is looked at."""
    if len(payload) > JSON_BYTES:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def parse_json(payload: bytes) -> Any:
    """Give the value of a whole RFC 8259 text, NOT_JSON if `payload` is none or is too long.

    An INTEGER arrives as int and every other number as float; strings are not yet held against
    the STRING limit.
    """
    if len(payload) > _JSON_BYTES:
        return NOT_JSON
    decode, fault = _decoder()
    try:
        value = decode(payload)
        if _LONG_NUMBER in payload.translate(_DIGITS_ALONE):
            return NOT_JSON if _is_too_deep(payload) else _with_reals(value)
    except (fault, ValueError, OverflowError, RecursionError):
        return NOT_JSON
    return NOT_JSON if _is_too_deep(payload) else value


@cache
def _decoder() -> tuple[Callable[[bytes], Any], type[Exception]]:
    """Return a decoder of JSON and what it raises; it brings 2 MiB, which no start needs."""
    import msgspec

    return msgspec.json.Decoder().decode, msgspec.MsgspecError


def _with_reals(value: Any) -> Any:
    """Return the value with each integer beyond 64 bits as a REAL.

    Raises OverflowError for one beyond the binary64 range.
    """
    if type(value) is dict:
        return {key: _with_reals(member) for key, member in value.items()}
    if type(value) is list:
        return [_with_reals(member) for member in value]
    if type(value) is int and in_64_bits(value) is None:
        return float(value)
    return value


def _is_too_deep(payload: bytes) -> bool:
    """Count the levels exactly: how deep the decoder gets depends on the stack it starts from."""
    if len(payload) <= 2 * _JSON_LEVELS:
        return False
    if payload.count(b"[") + payload.count(b"{") <= _JSON_LEVELS:
        return False
    brackets = _NOT_A_BRACKET.sub(b"", payload)
    return max(accumulate(map(_LEVEL_STEP.__getitem__, brackets)), default=0) > _JSON_LEVELS
