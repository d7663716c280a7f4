"""Numbers in registers and characteristics: markers of no value, and short floats."""

import struct

from gateway.settings.declaration import check

USUAL = "usual"
"""Stands for the usual markers of a type."""

FLOAT32_DIGITS = range(1, 10)
"""Most digits of a 32-bit float."""


@check(
    'list of numbers, or `"usual"`',
    anyOf=[{"type": "array", "items": {"type": "number"}}, {"const": USUAL}],
)
def invalid(value: object) -> tuple[float, ...] | str:
    """Accept raw numbers that mean "no value", or "usual"."""
    if value == USUAL:
        return USUAL
    if not isinstance(value, list) or not all(map(_is_number, value)):
        raise ValueError('a list of numbers such as [0x8000], or "usual"')
    return tuple(value)


def is_marker(markers: tuple[float, ...] | str, layout: str, packed: bytes) -> bool:
    """Return whether a number means "no value"; `packed` is big-endian.

    A marker may be written with its sign or as the bits, as manuals do: `-32768` is `0x8000`. The
    usual ones are the lowest signed number, the highest unsigned one, and NaN.
    """
    if len(packed) != struct.calcsize(f">{layout}"):
        return False
    value = struct.unpack(f">{layout}", packed)[0]
    bits = int.from_bytes(packed, "big")
    if not isinstance(markers, str):
        return value in markers or bits in markers
    if layout in "fd":
        return bool(value != value)
    size = 8 * len(packed)
    return bits == (1 << (size - 1) if layout.islower() else (1 << size) - 1)


def shortest(value: float) -> float:
    """Return the number with the fewest digits that is the same 32-bit float: 230.2."""
    packed = struct.pack(">f", value)
    for digits in FLOAT32_DIGITS:
        short = float(f"{value:.{digits}g}")
        if _is_float32(short) and struct.pack(">f", short) == packed:
            return short
    return value


def _is_float32(value: float) -> bool:
    """Return whether a rounded number still fits 32 bits."""
    try:
        struct.pack(">f", value)
    except OverflowError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
