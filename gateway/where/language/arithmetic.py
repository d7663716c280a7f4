"""Arithmetic on numbers; whatever is not an INTEGER or a REAL is NULL (where-language 7 and 8)."""

import math
from collections.abc import Callable
from typing import Final

from gateway.where.language.conversions import Number, finite, in_64_bits


def add(left: Number, right: Number) -> Number | None:
    """Give `left + right`."""
    if isinstance(left, int) and isinstance(right, int):
        return in_64_bits(left + right)
    return finite(float(left) + float(right))


def subtract(left: Number, right: Number) -> Number | None:
    """Give `left - right`."""
    if isinstance(left, int) and isinstance(right, int):
        return in_64_bits(left - right)
    return finite(float(left) - float(right))


def multiply(left: Number, right: Number) -> Number | None:
    """Give `left * right`."""
    if isinstance(left, int) and isinstance(right, int):
        return in_64_bits(left * right)
    return finite(float(left) * float(right))


def divide(left: Number, right: Number) -> float | None:
    """Give `left / right`, always REAL: Python's own int / int does not round the operands."""
    return finite(float(left) / float(right)) if right else None


def remainder(left: Number, right: Number) -> Number | None:
    """Give `left % right` with the sign of `left`."""
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        magnitude = abs(left) % abs(right)
        return -magnitude if left < 0 else magnitude
    return math.fmod(left, right)


OPERATIONS: Final[dict[str, Callable[[Number, Number], Number | None]]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
}


def negate(number: Number) -> Number | None:
    """Give `-number`."""
    return in_64_bits(-number) if isinstance(number, int) else -number


def absolute(number: Number) -> Number | None:
    """Give ABS."""
    return in_64_bits(abs(number)) if isinstance(number, int) else abs(number)


def round_half_away(number: Number) -> int | None:
    """Give ROUND, exactly: the fraction of a magnitude has no rounding error, `x + 0.5` has."""
    magnitude = abs(number)
    whole = math.floor(magnitude)
    if magnitude - whole >= 0.5:
        whole += 1
    return in_64_bits(-whole if number < 0 else whole)


def floor(number: Number) -> int | None:
    """Give FLOOR."""
    return in_64_bits(math.floor(number))


def ceiling(number: Number) -> int | None:
    """Give CEIL."""
    return in_64_bits(math.ceil(number))


def truncate(number: Number) -> int | None:
    """Give CAST AS INTEGER."""
    return in_64_bits(math.trunc(number))
