"""A payload as text and as JSON (where-language 6.3)."""

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any, Final

JSON_BYTES: Final = 262_144
"""Longest payload that is decoded; a longer one is neither text nor JSON."""

JSON_LEVELS: Final = 100
"""Deepest nesting of a payload that is JSON."""

STRING_CODE_POINTS: Final = 65_535
"""Longest text of a payload."""

INTEGER_LOWEST: Final = -(2**63)
INTEGER_HIGHEST: Final = 2**63 - 1

NOT_JSON: Final[Any] = object()
"""Stands for the value of a payload that is not JSON; no step leads anywhere from it."""

_STRUCTURE: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')
"""All bytes but those that say how deep a value is."""

_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_RUN: Final = re.compile(rb"\[+|\]+")
_OPENING: Final = b"["[0]

_MANY: Final = 8_192
"""Runs of opening brackets that are too many to be followed one by one, which takes a
millisecond."""

_JSON_BYTES = JSON_BYTES  # compiled, C names that no other module sees
_JSON_LEVELS = JSON_LEVELS
_TWO_BRACKETS_A_LEVEL = 2 * JSON_LEVELS

_DIGITS_ALONE: Final = bytes(48 if byte in b"0123456789" else 0 for byte in range(256))
_LONG_NUMBER: Final = b"0" * 19
"""Digits of the shortest integer that may not fit 64 bits, as `_DIGITS_ALONE` translates them."""

_LONG_DIGITS: Final = re.compile(_LONG_NUMBER + b"0*")
"""Digits of such an integer, or of what looks like one: a literal prefix is found ten times as fast
as a class of digits."""

_MINUS: Final = b"-"[0]
_HIGHEST: Final = b"%d" % INTEGER_HIGHEST
_LOWEST: Final = b"%d" % -INTEGER_LOWEST


def decode_payload(payload: bytes) -> str | None:
    """Decode UTF-8; None if `payload` is not well-formed or longer than JSON_BYTES."""
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
        if _LONG_NUMBER in payload.translate(_DIGITS_ALONE):
            payload = _with_reals(payload)
        value = decode(payload)
    except (fault, ValueError, OverflowError, RecursionError):
        return NOT_JSON
    if len(payload) > _TWO_BRACKETS_A_LEVEL and _is_too_deep(payload):
        return NOT_JSON
    return value


@cache
def _decoder() -> tuple[Callable[[bytes], Any], type[Exception]]:
    """Return a decoder of JSON and what it raises; it brings 2 MiB, which no start needs."""
    import msgspec

    return msgspec.json.Decoder().decode, msgspec.MsgspecError


def _with_reals(payload: bytes) -> bytes:
    """Return a JSON text with `.0` behind each integer beyond 64 bits, which makes it a REAL.

    What is no JSON text stays none.
    """
    payload = b"  " + payload + b" "  # something stands before and behind all digits
    plain = _without_escapes(payload)
    parts: list[bytes] = []
    quotes = counted = copied = 0
    for found in _LONG_DIGITS.finditer(plain.translate(_DIGITS_ALONE)):
        begin, end = found.span()
        before = plain[begin - 1]
        if plain[end] in b".eE" or before in b".eE":
            continue
        if before in b"+-" and plain[begin - 2] in b"eE":
            continue
        bound = _LOWEST if before == _MINUS else _HIGHEST
        if end - begin == len(bound) and plain[begin:end] <= bound:
            continue
        quotes += plain.count(b'"', counted, begin)
        counted = begin
        if not quotes % 2:
            parts += (payload[copied:end], b".0")
            copied = end
    return b"".join((*parts, payload[copied:]))


def _without_escapes(payload: bytes) -> bytes:
    """Return a JSON text in which each quotation mark begins or ends a string, of the same size."""
    if b"\\" not in payload:
        return payload
    return payload.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")


def _is_too_deep(payload: bytes) -> bool:
    """Count the levels exactly: how deep the decoder gets depends on the stack it starts from.

    `payload` is a JSON text. Runs of brackets are followed; while there are too many, the innermost
    level is taken off, wherever there is one.
    """
    if payload.count(b"[") + payload.count(b"{") <= _JSON_LEVELS:
        return False
    brackets = _without_escapes(payload).translate(_SQUARE, _STRUCTURE)
    # a string that ends where one begins goes on: no bracket is between them
    brackets = b"".join(brackets.replace(b'""', b"").split(b'"')[::2])
    most = _JSON_LEVELS
    while brackets.count(b"[]") > _MANY:
        brackets = brackets.replace(b"[]", b"")
        most -= 1
    runs = _RUN.findall(brackets)
    levels = accumulate([len(run) if run[0] == _OPENING else -len(run) for run in runs])
    return max(levels, default=0) > most
