"""Numbers as the gateway's filters see them, exact also on boards whose floats have 32 bits.

An INTEGER is an `int` of 64 bits. A REAL is a pair (m, e) that stands for m times two to the e:
every binary64 number is one, and comparing two of them is arithmetic on whole numbers.
"""

from . import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    Real = tuple[int, int]
    Number = int | Real

_INTEGER_LOWEST = const(-(1 << 63))
_INTEGER_HIGHEST = const((1 << 63) - 1)

_NUMERIC_TEXT_MAX = const(64)
"""Code points of a text that is read as a number."""

_DIGITS = const(53)  # bits of a binary64 number's mantissa
_LOWEST_EXPONENT = const(-1074)
_BITS_MAX = const(1024)  # a number of more bits is infinite
_POWERS_HIGHEST = const(310)  # of ten: from here on a number is infinite
_POWERS_LOWEST = const(-330)  # up to here it is zero


def _bits(number: int) -> int:
    return len(bin(number)) - 2  # MicroPython's integers have no bit_length()


def nearest(numerator: int, denominator: int) -> "Real | None":
    """Return the binary64 number nearest to a fraction, ties to even; None for an infinite one.

    The denominator is above 0.
    """
    if numerator < 0:
        real = nearest(-numerator, denominator)
        return None if real is None else (-real[0], real[1])
    exponent = _bits(numerator) - _bits(denominator) - _DIGITS
    mantissa = _scaled(numerator, denominator, max(exponent, _LOWEST_EXPONENT))
    if mantissa[0] >> _DIGITS:  # one bit more than fits
        mantissa = _scaled(numerator, denominator, max(exponent + 1, _LOWEST_EXPONENT))
    whole, rest, divisor, exponent = mantissa
    if 2 * rest > divisor or (2 * rest == divisor and whole & 1):
        whole += 1
    return None if _bits(whole) + exponent > _BITS_MAX else (whole, exponent)


def _scaled(numerator: int, denominator: int, exponent: int) -> "tuple[int, int, int, int]":
    """Divide by two to the exponent: quotient, rest, divisor, exponent."""
    if exponent < 0:
        numerator <<= -exponent
    else:
        denominator <<= exponent
    return numerator // denominator, numerator % denominator, denominator, exponent


def from_binary64(data: bytes) -> "Real | None":
    """Return the number in 8 bytes, the low one first; None for infinities and not a number."""
    bits = int.from_bytes(data, "little")
    exponent, fraction = bits >> 52 & 0x7FF, bits & ((1 << 52) - 1)
    if exponent == 0x7FF:
        return None
    if exponent:
        fraction |= 1 << 52
        exponent -= 1
    return (-fraction if bits >> 63 else fraction), exponent + _LOWEST_EXPONENT


def from_decimal(mantissa: int, exponent: int) -> "Real | None":
    """Return the binary64 number nearest to mantissa times ten to the exponent."""
    size = len(str(abs(mantissa))) + exponent
    if mantissa == 0 or size < _POWERS_LOWEST:
        return 0, 0
    if size > _POWERS_HIGHEST:
        return None
    if exponent < 0:
        return nearest(mantissa, 10**-exponent)
    return nearest(mantissa * 10**exponent, 1)


def read_number(text: str) -> "Number | None":
    """Return what a numeric text says, None for any other text."""
    if len(text) > _NUMERIC_TEXT_MAX:
        return None
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    negative = text[:1] == "-"
    whole, end = _digits(unsigned, 0)
    fraction, point = "", unsigned[end : end + 1] == "."
    if point:
        fraction, end = _digits(unsigned, end + 1)
    if not whole and not fraction:
        return None
    mantissa = int(whole + fraction)
    if negative:
        mantissa = -mantissa
    if end == len(unsigned):
        if not point and _INTEGER_LOWEST <= mantissa <= _INTEGER_HIGHEST:
            return mantissa
        return from_decimal(mantissa, -len(fraction))
    exponent = _exponent(unsigned[end:])
    return None if exponent is None else from_decimal(mantissa, exponent - len(fraction))


def _digits(text: str, start: int) -> "tuple[str, int]":
    end = start
    while end < len(text) and "0" <= text[end] <= "9":
        end += 1
    return text[start:end], end


def _exponent(text: str) -> "int | None":
    if text[0] not in "eE":
        return None
    start = 2 if text[1:2] in ("+", "-") else 1
    digits, end = _digits(text, start)
    if not digits or end < len(text):
        return None
    return -int(digits) if text[1] == "-" else int(digits)


def compare(left: "Number", right: "Number") -> int:
    """Return -1, 0 or 1, exactly."""
    one, other, _ = _aligned(left, right)
    return (one > other) - (one < other)


def _aligned(left: "Number", right: "Number") -> "tuple[int, int, int]":
    """Return two whole numbers and the power of two that both are to be multiplied with."""
    one, first = left if isinstance(left, tuple) else (left, 0)
    other, second = right if isinstance(right, tuple) else (right, 0)
    exponent = min(first, second)
    return one << first - exponent, other << second - exponent, exponent


def distance(left: "Number", right: "Number") -> "Number | None":
    """Return the absolute value of `left - right`: INTEGER of two of them, else rounded to REAL.

    None where that is beyond 64 bits or infinite.
    """
    if isinstance(left, int) and isinstance(right, int):
        difference = left - right
        within = -_INTEGER_HIGHEST <= difference <= _INTEGER_HIGHEST
        return abs(difference) if within else None
    one, other, exponent = _aligned(_real(left), _real(right))
    difference = abs(one - other)
    if exponent < 0:
        return nearest(difference, 1 << -exponent)
    return nearest(difference << exponent, 1)


def _real(number: "Number") -> "Number":
    """Round an INTEGER to the nearest REAL; it is never infinite."""
    return number if isinstance(number, tuple) else nearest(number, 1) or 0
