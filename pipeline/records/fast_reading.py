"""A payload that is a reading, by a typed decoder: quick for what is plain, no answer for the rest.

Whatever it takes, pipeline.reading would give the same for by the rules themselves.
"""

import math

import msgspec


class Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a reading says; a field that it has not is None."""

    value: int | float | str | bool
    unit: str | None = None
    quality: str | None = None
    time: int | None = None


INT64 = range(-(2**63), 2**63)
_decode = msgspec.json.Decoder(Body).decode


def read_body(payload: bytes) -> Body | None:
    """Return the payload's body, None if it needs a second look.

    Escapes and bytes beyond ASCII do, since they may be half a character, and so do numbers that
    64 bits do not hold.
    """
    if b"\\" in payload or not payload.isascii():
        return None
    try:
        body = _decode(payload)
    except msgspec.MsgspecError:
        return None
    return body if _holds(body.value) and (body.time is None or body.time in INT64) else None


def _holds(value: float | str) -> bool:
    """Say whether 64 bits hold a number; a text is none."""
    if type(value) is int:
        return value in INT64
    return type(value) is not float or math.isfinite(value)
