"""The conversions and the comparison rule in SQL (where-language 5 and 16)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from gateway.where.sqlite.operand import NOTHING, NULL, Kind, Operand, Steps

_UNTAGGED: Final = "CASE {0} WHEN x'01' THEN 1 WHEN x'00' THEN 0 END"
_TAGGED: Final = "CASE {0} WHEN 1 THEN x'01' WHEN 0 THEN x'00' END"


@dataclass(frozen=True, slots=True)
class _Conversion:
    """The SQL for each type, `{0}` being the value, and the types of the result."""

    number: str
    text: str
    boolean: str
    unchanged: Kind
    kinds: Kind


_Way = Callable[[Operand, Steps], Operand]

_TO_NUMBER: Final = _Conversion("{0}", "where_number({0})", "{0}", Kind.NUMBER, Kind.NUMBER)
_TO_BOOLEAN: Final = _Conversion(
    "{0} <> 0",
    "CASE lower({0}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
    "{0}",
    Kind.BOOLEAN,
    Kind.BOOLEAN,
)
_TO_STRING: Final = _Conversion(
    "CASE typeof({0}) WHEN 'integer' THEN CAST({0} AS TEXT) END",
    "{0}",
    "CASE {0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END",
    Kind.STRING,
    Kind.STRING,
)


def to_number(operand: Operand, steps: Steps) -> Operand:
    """Convert by TO_NUMBER."""
    if operand.kinds == Kind.BOOLEAN:
        return Operand(operand.sql, Kind.INTEGER, operand.level, operand.depth)
    return _convert(operand, _TO_NUMBER, steps)


def to_boolean(operand: Operand, steps: Steps) -> Operand:
    """Convert by TO_BOOLEAN; the result is 0, 1 or NULL."""
    return _convert(operand, _TO_BOOLEAN, steps)


def to_string(operand: Operand, steps: Steps) -> Operand:
    """Convert by TO_STRING."""
    return _convert(operand, _TO_STRING, steps)


def _convert(operand: Operand, conversion: _Conversion, steps: Steps) -> Operand:
    kinds = operand.kinds
    if not kinds:
        return NULL
    if kinds in conversion.unchanged:
        return operand
    value = steps.once(operand)
    form = _of_one_type(kinds, conversion)
    if form is None:
        arms = "".join(_arms(kinds, conversion))
        form = f"CASE typeof({{0}}){arms} END"
    return steps.make(form.format(value.sql), conversion.kinds, value)


def _of_one_type(kinds: Kind, conversion: _Conversion) -> str | None:
    if kinds in Kind.NUMBER:
        return conversion.number
    return {Kind.STRING: conversion.text, Kind.BOOLEAN: conversion.boolean}.get(kinds)


def _arms(kinds: Kind, conversion: _Conversion) -> Sequence[str]:
    arms = []
    if kinds & Kind.NUMBER:
        arms += [f" WHEN '{name}' THEN {conversion.number}" for name in ("integer", "real")]
    if kinds & Kind.STRING:
        arms.append(f" WHEN 'text' THEN {conversion.text}")
    if kinds & Kind.BOOLEAN:
        arms.append(f" WHEN 'blob' THEN {conversion.boolean.format(_UNTAGGED)}")
    return arms


def alike(operands: Sequence[Operand], steps: Steps) -> tuple[list[Operand], Kind]:
    """Return values that may stand for each other, and all the types they may have together."""
    kinds = NOTHING
    for operand in operands:
        kinds |= operand.kinds
    if kinds == Kind.BOOLEAN:
        return list(operands), kinds
    return [_tagged(operand, steps) for operand in operands], kinds


def _tagged(operand: Operand, steps: Steps) -> Operand:
    if operand.kinds != Kind.BOOLEAN:
        return operand
    return steps.make(_TAGGED.format(operand.sql), Kind.BOOLEAN, operand)


def compare(operator: str, left: Operand, right: Operand, steps: Steps) -> Operand:
    """Compare two values of any types; the result is 0, 1 or NULL."""
    if not left.kinds or not right.kinds:
        return NULL
    left, right = steps.once(left), steps.once(right)
    texts = Kind.STRING
    booleans = Kind.STRING | Kind.BOOLEAN | Kind.JSON
    ways: list[tuple[str | None, _Way]] = [
        (_guard("= 'text'", texts, left, right), lambda operand, _: operand),
        (_guard("IN ('text', 'blob')", booleans, left, right), to_boolean),
        ("", to_number),
    ]
    possible = [(guard, convert) for guard, convert in ways if guard is not None]
    sometimes = list(takewhile(lambda way: way[0], possible))
    arms, parts = "", list[Operand]()
    for guard, convert in (*sometimes, possible[len(sometimes)]):
        operands = convert(left, steps), convert(right, steps)
        parts += operands
        comparison = f"{operands[0].sql} {operator} {operands[1].sql}"
        arms += f" WHEN {guard} THEN {comparison}" if guard else f" ELSE {comparison}"
    sql = f"CASE{arms} END" if sometimes else comparison
    return steps.make(sql, Kind.BOOLEAN, *parts)


def _guard(test: str, kinds: Kind, *operands: Operand) -> str | None:
    """Return when all operands are of `kinds`: '' for always, None for never."""
    tests = []
    for operand in operands:
        if not operand.kinds & kinds:
            return None
        if operand.kinds not in kinds:
            tests.append(f"typeof({operand.sql}) {test}")
    return " AND ".join(tests)
