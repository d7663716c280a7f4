"""Values of drivers as decimals that fit a frame."""

from . import const

_MANTISSA_MAX = const(0x7FFFFFFF)


def decimal(value: float, digits: int) -> "tuple[int, int]":
    """Return a value as a decimal with as many digits behind the point as fit a frame."""
    mantissa = round(value * 10**digits)
    while abs(mantissa) > _MANTISSA_MAX:
        digits -= 1
        mantissa = round(value * 10**digits) if digits >= 0 else mantissa // 10
    return mantissa, -digits
