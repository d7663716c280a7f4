"""Arithmetic and functions (where-language 7 and 8)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.mqtt.message import STRING_CODE_POINTS
from gateway.where.language import work
from gateway.where.language.conversions import (
    ORDERS,
    Number,
    Value,
    compare,
    finite,
    in_64_bits,
    to_boolean,
    to_number,
    to_string,
)
from gateway.where.language.expression import CastType


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
    """Return `left / right`, always REAL: Python's own int / int does not round the operands."""
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
    """Return ROUND, exactly: the fraction of a magnitude has no rounding error, `x + 0.5` has."""
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


Conversion = Callable[[Value], Value]


def unchanged(value: Value) -> Value:
    """Return an argument unchanged."""
    return value


@dataclass(frozen=True, slots=True)
class Function:
    """How a function converts its arguments and computes its result.

    `conversions` has one conversion for each argument, and the last one is for all further ones;
    `most` is None without an upper bound. With `strict`, an argument that is NULL after its
    conversion makes the result NULL and `compute` is not called. `work` returns the cost for the
    arguments of `compute`; None if it is the same for all.
    """

    compute: Callable[..., Value]
    conversions: tuple[Conversion, ...]
    fewest: int
    most: int | None
    strict: bool = True
    work: Callable[..., int] | None = None

    @property
    def arity(self) -> str:
        """Return the number of arguments, for an error message."""
        if self.most is None:
            return f"{self.fewest} or more arguments"
        if self.fewest < self.most:
            return f"{self.fewest} or {self.most} arguments"
        return "1 argument" if self.most == 1 else f"{self.most} arguments"

    def accepts(self, count: int) -> bool:
        """Return whether a call may have `count` arguments."""
        return self.fewest <= count and (self.most is None or count <= self.most)

    def conversion(self, index: int) -> Conversion:
        """Return the conversion of the argument at `index`."""
        return self.conversions[min(index, len(self.conversions) - 1)]


def _upper(text: str) -> str:
    # bytes are converted in ASCII only, in a tenth of the time of `translate`
    return text.upper() if text.isascii() else text.encode().upper().decode()


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else text.encode().lower().decode()


def _trim(text: str) -> str:
    return text.strip(" ")


def _substring(text: str, start: Number, length: Number | None = None) -> str | None:
    if not isinstance(start, int) or start == 0:
        return None
    begin = start - 1 if start > 0 else len(text) + start
    if length is None:
        return text[max(begin, 0) :]
    if not isinstance(length, int) or length < 0:
        return None
    return text[max(begin, 0) : max(begin + length, 0)]


def _position(text: str, part: str) -> int:
    return text.find(part) + 1


def _concatenate(*texts: str) -> str | None:
    return None if sum(map(len, texts)) > STRING_CODE_POINTS else "".join(texts)


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _null_if(value: Value, other: Value) -> Value:
    return None if compare(ORDERS["="], value, other) else value


FUNCTIONS: Final = {
    "UPPER": Function(_upper, (to_string,), 1, 1, work=work.letters),
    "LOWER": Function(_lower, (to_string,), 1, 1, work=work.letters),
    "LENGTH": Function(len, (to_string,), 1, 1),
    "TRIM": Function(_trim, (to_string,), 1, 1, work=work.copied),
    "SUBSTR": Function(_substring, (to_string, to_number), 2, 3, work=work.cut),
    "INSTR": Function(_position, (to_string,), 2, 2, work=work.searched),
    "CONCAT": Function(_concatenate, (to_string,), 1, None, work=work.copied),
    "ABS": Function(absolute, (to_number,), 1, 1),
    "ROUND": Function(round_half_away, (to_number,), 1, 1),
    "FLOOR": Function(floor, (to_number,), 1, 1),
    "CEIL": Function(ceiling, (to_number,), 1, 1),
    "COALESCE": Function(_coalesce, (unchanged,), 1, None, strict=False),
    "NULLIF": Function(_null_if, (unchanged,), 2, 2, strict=False, work=work.compared),
}

STATEFUL_FUNCTIONS: Final = {"PREV": 1, "SENT": 1, "CHANGED": 1, "DEADBAND": 2, "EVERY": 1}
"""The functions with memory and the number of their arguments (where-language 13)."""


def _to_integer(value: Value) -> int | None:
    number = to_number(value)
    return None if number is None else truncate(number)


def _to_real(value: Value) -> float | None:
    number = to_number(value)
    return None if number is None else float(number)


CASTS: Final[dict[CastType, Callable[[Any], Value]]] = {
    CastType.INTEGER: _to_integer,
    CastType.REAL: _to_real,
    CastType.STRING: to_string,
    CastType.BOOLEAN: to_boolean,
}

TYPE_NAMES: Final = {
    "INTEGER": CastType.INTEGER,
    "INT": CastType.INTEGER,
    "BIGINT": CastType.INTEGER,
    "REAL": CastType.REAL,
    "DOUBLE": CastType.REAL,
    "FLOAT": CastType.REAL,
    "STRING": CastType.STRING,
    "TEXT": CastType.STRING,
    "VARCHAR": CastType.STRING,
    "BOOLEAN": CastType.BOOLEAN,
    "BOOL": CastType.BOOLEAN,
}
"""The names of types with their synonyms, in capitals."""
