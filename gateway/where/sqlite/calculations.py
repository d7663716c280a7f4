"""Arithmetic, CAST and functions in SQL (where-language 7, 8 and 16)."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.mqtt.message import STRING_CODE_POINTS
from gateway.where.language.expression import CastType, Pattern, Wildcard
from gateway.where.sqlite.operand import (
    NULL,
    PATTERN_ESCAPE,
    Kind,
    Operand,
    Steps,
    compare,
    grouped,
    of_one_kind,
    to_boolean,
    to_number,
    to_string,
)

_INFINITE: Final = "IN (9e999, -9e999)"
_LOWEST: Final = "(-9223372036854775807 - 1)"


def operate(operator: str, left: Operand, right: Operand, steps: Steps) -> Operand:
    """Give `left operator right` of two numbers."""
    if NULL in (left, right):
        return NULL
    a, b = steps.once(left), steps.once(right)
    integers = a.kinds == b.kinds == Kind.INTEGER
    if operator == "%":
        sql = f"{a.sql} % {b.sql}" if integers else f"where_remainder({a.sql}, {b.sql})"
        return steps.make(sql, a.kinds | b.kinds, a, b)
    if operator == "/":
        quotient = f"CAST({a.sql} AS REAL) / {b.sql}"
        return steps.make(_unless(f"{quotient} {_INFINITE}", quotient), Kind.REAL, a, b)
    result = f"{a.sql} {operator} {b.sql}"
    if integers:
        return steps.make(f"CASE typeof({result}) WHEN 'integer' THEN {result} END", a.kinds, a, b)
    # SQLite turns an INTEGER overflow into a REAL.
    overflow = f"typeof({a.sql}) = 'integer' AND typeof({b.sql}) = 'integer'"
    fault = f"typeof({result}) = 'real' AND ({overflow} OR {result} {_INFINITE})"
    return steps.make(_unless(fault, result), Kind.NUMBER, a, b)


def _unless(fault: str, result: str) -> str:
    return f"CASE WHEN {fault} THEN NULL ELSE {result} END"


def negate(number: Operand, steps: Steps) -> Operand:
    """Give `-number`."""
    return _but_for_the_lowest(number, "-{0}", steps)


def _absolute(number: Operand, steps: Steps) -> Operand:
    return _but_for_the_lowest(number, "abs({0})", steps)


def _but_for_the_lowest(number: Operand, form: str, steps: Steps) -> Operand:
    if number is NULL:
        return NULL
    value = steps.once(number)
    lowest = f"typeof({value.sql}) = 'integer' AND {value.sql} = {_LOWEST}"
    return steps.make(_unless(lowest, form.format(value.sql)), value.kinds, value)


_WHOLE: Final = "CAST({0} AS INTEGER)"
_TO_INTEGER: Final = {
    "CAST": _WHOLE,
    "FLOOR": f"{_WHOLE} - ({{0}} < {_WHOLE})",
    "CEIL": f"{_WHOLE} + ({{0}} > {_WHOLE})",
    "ROUND": f"{_WHOLE} + ({{0}} - {_WHOLE} >= 0.5) - ({{0}} - {_WHOLE} <= -0.5)",
}
"""The results for a REAL within 64 bits, whose whole part and fraction are exact."""


def _to_integer(function: str, number: Operand, steps: Steps) -> Operand:
    if number.kinds in Kind.INTEGER:
        return number
    value = steps.once(number)
    real = _TO_INTEGER[function].format(value.sql)
    fits = f"{value.sql} >= -9223372036854775808.0 AND {value.sql} < 9223372036854775808.0"
    sql = f"CASE WHEN typeof({value.sql}) = 'integer' THEN {value.sql} WHEN {fits} THEN {real} END"
    return steps.make(sql, Kind.INTEGER, value)


def cast(to: CastType, operand: Operand, steps: Steps) -> Operand:
    """Give `CAST(operand AS to)`."""
    if to is CastType.BOOLEAN:
        return to_boolean(operand, steps)
    if to is CastType.STRING:
        return to_string(operand, steps)
    number = to_number(operand, steps)
    if to is CastType.INTEGER:
        return _to_integer("CAST", number, steps)
    return NULL if number is NULL else steps.make(f"CAST({number.sql} AS REAL)", Kind.REAL, number)


def like(text: Operand, pattern: Pattern, steps: Steps) -> Operand:
    """Return `text LIKE pattern`; GLOB is always case-sensitive, LIKE only by a setting."""
    value = steps.once(text)
    escaped = steps.parameter("".join(map(_language_element, pattern)))
    slow = f"where_like({value.sql}, {escaped})"
    fast = f"{value.sql} GLOB {steps.parameter(''.join(map(_glob_element, pattern)))}"
    return steps.make(slow if "\0" in pattern else _by_nul(value, fast, slow), Kind.BOOLEAN, value)


def _language_element(element: str | Wildcard) -> str:
    if isinstance(element, Wildcard):
        return element.value
    return PATTERN_ESCAPE + element if element in ("%", "_", PATTERN_ESCAPE) else element


def _glob_element(element: str | Wildcard) -> str:
    if isinstance(element, Wildcard):
        return "*" if element is Wildcard.SEQUENCE else "?"
    return f"[{element}]" if element in ("*", "?", "[") else element


def _by_nul(text: Operand, fast: str, slow: str) -> str:
    """Choose the SQL for a text with U+0000, where several of SQLite's functions stop."""
    return f"CASE WHEN instr({text.sql}, char(0)) THEN {slow} ELSE {fast} END"


def _length(text: Operand, steps: Steps) -> Operand:
    value = steps.once(text)
    sql = _by_nul(value, f"length({value.sql})", f"where_length({value.sql})")
    return steps.make(sql, Kind.INTEGER, value)


def _substring(texts: Sequence[Operand], steps: Steps) -> Operand:
    text, *numbers = map(steps.once, texts)
    size = steps.once(_length(text, steps))
    start = numbers[0]
    begin = steps.once(
        steps.make(
            f"CASE WHEN typeof({start.sql}) <> 'integer' OR {start.sql} = 0 THEN NULL"
            f" WHEN {start.sql} > 0 THEN {start.sql} - 1 ELSE {size.sql} + {start.sql} END",
            Kind.INTEGER,
            start,
            size,
        )
    )
    end = size
    if len(numbers) == 2:
        count = numbers[1]
        fits = f"typeof({count.sql}) = 'integer' AND {count.sql} >= 0"
        # A sum beyond 64 bits is a REAL, which suffices: only its being above the size counts.
        end_sql = f"CASE WHEN {fits} THEN min({begin.sql} + {count.sql}, {size.sql}) END"
        end = steps.once(steps.make(end_sql, Kind.NUMBER, count, begin, size))
    first = f"min(max({begin.sql}, 0), {size.sql})"
    arguments = f"{text.sql}, {first} + 1, max({end.sql} - {first}, 0)"
    sql = _by_nul(text, f"substr({arguments})", f"where_substr({arguments})")
    return steps.make(sql, Kind.STRING, text, begin, end)


def _concatenation(texts: Sequence[Operand], steps: Steps) -> Operand:
    joined = steps.once(
        steps.make(
            grouped([text.sql for text in texts], lambda sqls: f"({' || '.join(sqls)})"),
            Kind.STRING,
            *texts,
        )
    )
    length = _length(joined, steps)
    sql = f"CASE WHEN {length.sql} <= {STRING_CODE_POINTS} THEN {joined.sql} END"
    return steps.make(sql, Kind.STRING, joined, length)


def _coalesce(operands: Sequence[Operand], steps: Steps) -> Operand:
    """Give the first operand that is not NULL."""
    values, kinds = of_one_kind(operands, steps)
    sqls = [value.sql for value in values]
    sql = grouped(sqls, lambda group: f"coalesce({', '.join((*group, NULL.sql))})")
    return steps.make(sql, kinds, *values)


def _null_if(operands: Sequence[Operand], steps: Steps) -> Operand:
    value, other = map(steps.once, operands)
    equal = compare("=", value, other, steps)
    return steps.make(_unless(equal.sql, value.sql), value.kinds, equal, value)


def call(function: str, operands: Sequence[Operand], steps: Steps) -> Operand:
    """Give the value of a call of where-language 8."""
    if function in _OF_VALUES:
        return _OF_VALUES[function](operands, steps)
    if function in _OF_NUMBERS:
        number = to_number(operands[0], steps)
        return NULL if number is NULL else _OF_NUMBERS[function](number, steps)
    numbers = [to_number(operand, steps) for operand in operands[1:] if function == "SUBSTR"]
    texts = [to_string(operand, steps) for operand in operands[: len(operands) - len(numbers)]]
    arguments = [*texts, *numbers]
    if NULL in arguments:
        return NULL
    if function in _PLAIN:
        name, kinds = _PLAIN[function]
        sqls = ", ".join(argument.sql for argument in arguments)
        return steps.make(f"{name}({sqls})", kinds, *arguments)
    return _OF_TEXTS[function](arguments, steps)


_Calculation = Callable[[Sequence[Operand], Steps], Operand]

_OF_VALUES: Final[dict[str, _Calculation]] = {"COALESCE": _coalesce, "NULLIF": _null_if}
_OF_NUMBERS: Final[dict[str, Callable[[Operand, Steps], Operand]]] = {
    "ABS": _absolute,
    "ROUND": lambda number, steps: _to_integer("ROUND", number, steps),
    "FLOOR": lambda number, steps: _to_integer("FLOOR", number, steps),
    "CEIL": lambda number, steps: _to_integer("CEIL", number, steps),
}
_PLAIN: Final = {
    "UPPER": ("upper", Kind.STRING),
    "LOWER": ("lower", Kind.STRING),
    "TRIM": ("trim", Kind.STRING),
    "INSTR": ("instr", Kind.INTEGER),
}
_OF_TEXTS: Final[dict[str, _Calculation]] = {
    "LENGTH": lambda texts, steps: _length(texts[0], steps),
    "SUBSTR": _substring,
    "CONCAT": _concatenation,
}
