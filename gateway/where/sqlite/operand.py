"""Values in the SQL of a translated expression, their conversion and comparison.

SQLite has no BOOLEAN and no JSON. A value that can only be a BOOLEAN is 0 or 1. If it may be
something else as well, TRUE, FALSE and a JSON container are the blobs below, so that `typeof`
distinguishes every type of the language.

The conditions of where-language 5 use a value several times. To avoid writing (and computing) an
operand several times, it becomes a column of a common table expression, a step. Steps that build on
each other are levels: level 2 selects from level 1. Nothing is nested in the text, since the stack
of SQLite's parser has only 100 places.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Flag
from itertools import takewhile
from typing import Final

LEVELS_MAX: Final = 64
"""Most levels of steps; SQLite's time to prepare a statement grows with their third power."""

STEPS_MAX: Final = 1_000
"""Most steps; SQLite has 2,000 columns."""

_GROUP: Final = 32
"""Operands in one list: SQLite allows 1,000 levels, and 100 arguments."""

_TEXT_DEPTH: Final = 6
"""Levels of nesting in the text of one step."""

TRUE_BLOB: Final = b"\x01"
FALSE_BLOB: Final = b"\x00"
CONTAINER_BLOB: Final = b"\x02"

PATTERN_ESCAPE: Final = "!"
"""Escapes `%`, `_` and itself in the pattern for `where_like`."""

Parameter = int | float | str


class UntranslatableError(Exception):
    """SQLite cannot evaluate this expression."""


class Kind(Flag):
    """The types that a value may have beside NULL."""

    BOOLEAN = 1
    INTEGER = 2
    REAL = 4
    STRING = 8
    JSON = 16
    NUMBER = INTEGER | REAL
    ANY = BOOLEAN | NUMBER | STRING | JSON


NOTHING: Final = Kind(0)
"""The kinds of a value that is always NULL."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value: its SQL, its types, the level whose columns it needs, and its nesting.

    An unnested one is a column or a parameter, and can be repeated at no cost.
    """

    sql: str
    kinds: Kind
    level: int = 0
    depth: int = 0


NULL: Final = Operand("NULL", NOTHING)


def grouped(texts: Sequence[str], form: Callable[[Sequence[str]], str]) -> str:
    """Return `form` of `texts`; many are first combined in groups."""
    while len(texts) > _GROUP:
        starts = range(0, len(texts), _GROUP)
        texts = [form(texts[start : start + _GROUP]) for start in starts]
    return form(texts)


class Parameters:
    """The constants of a translation, which are bound parameters."""

    def __init__(self) -> None:
        self.values: dict[str, Parameter] = {}

    def add(self, value: Parameter) -> str:
        """Return the name of the parameter for `value`."""
        name = f"where_{len(self.values)}"
        self.values[name] = value
        return f":{name}"


class Steps:
    """The steps of one condition."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._levels: list[list[str]] = []
        self._bound: dict[str, Operand] = {}

    def parameter(self, value: Parameter) -> str:
        """Return the name of the parameter for a constant."""
        return self._parameters.add(value)

    def make(self, sql: str, kinds: Kind, *operands: Operand) -> Operand:
        """Return the value of `sql`, which contains `operands`."""
        level = max((operand.level for operand in operands), default=0)
        depth = max((operand.depth for operand in operands), default=0) + 1
        made = Operand(f"({sql})", kinds, level, depth)
        return made if depth < _TEXT_DEPTH else self.once(made)

    def once(self, operand: Operand) -> Operand:
        """Return the same value as something that may be repeated."""
        if not operand.depth:
            return operand
        bound = self._bound.get(operand.sql)
        if bound is None:
            bound = self._bound[operand.sql] = self._bind(operand)
        return bound

    def _bind(self, operand: Operand) -> Operand:
        if operand.level >= LEVELS_MAX or len(self._bound) >= STEPS_MAX:
            raise UntranslatableError
        if operand.level == len(self._levels):
            self._levels.append([])
        name = f"where_step_{len(self._bound)}"
        self._levels[operand.level].append(f"{operand.sql} AS {name}")
        return Operand(name, operand.kinds, operand.level + 1)

    def select(self, operand: Operand) -> str:
        """Return the SQL of `operand` with all steps that it needs."""
        if not operand.level:
            return operand.sql
        tables = ", ".join(self._tables(self._levels[: operand.level]))
        query = f"SELECT {operand.sql} FROM where_level_{operand.level}"  # noqa: S608 - all ours
        return f"(WITH {tables} {query})"

    def _tables(self, levels: list[list[str]]) -> Iterable[str]:
        # MATERIALIZED: SQLite would otherwise inline the steps again.
        for level, columns in enumerate(levels, start=1):
            all_columns = ", ".join(
                [*([f"where_level_{level - 1}.*"] if level > 1 else []), *columns]
            )
            source = f" FROM where_level_{level - 1}" if level > 1 else ""
            yield f"where_level_{level} AS MATERIALIZED (SELECT {all_columns}{source})"


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


def of_one_kind(operands: Sequence[Operand], steps: Steps) -> tuple[list[Operand], Kind]:
    """Return values with a common representation, and all the types they may have together."""
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
    """Return a condition that all operands are of `kinds`: '' for always, None for never."""
    tests = []
    for operand in operands:
        if not operand.kinds & kinds:
            return None
        if operand.kinds not in kinds:
            tests.append(f"typeof({operand.sql}) {test}")
    return " AND ".join(tests)
