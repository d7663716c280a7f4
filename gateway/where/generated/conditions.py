"""How generated functions work out what is TRUE, FALSE or NULL."""

from typing import Final

from gateway.where.evaluation.predicates import any_equal, compare_counted
from gateway.where.generated.source import Source, Writers
from gateway.where.language.comparison import MIRRORED, ORDERS, compare
from gateway.where.language.conversions import to_string
from gateway.where.language.expression import (
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Not,
    Or,
)
from gateway.where.language.like import like_matcher
from gateway.where.language.work import liked

_SYMBOLS: Final = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _not(source: Source, expression: Not) -> str:
    truth, result = source.truth(expression.operands[0]), source.local()
    source.line(f"{result} = None if {truth} is None else not {truth}")
    return result


def _and(source: Source, expression: And) -> str:
    return _chain(source, expression, "False", "True")


def _or(source: Source, expression: Or) -> str:
    return _chain(source, expression, "True", "False")


def _chain(source: Source, expression: Expression, decision: str, neutral: str) -> str:
    """Write a chain flat: each operand is evaluated while nothing is decided."""
    first, *rest = expression.operands
    result = source.local()
    source.line(f"{result} = {source.truth(first)}")
    for operand in rest:
        with source.block(f"if {result} is not {decision}:"):
            truth = source.truth(operand)
            with source.block(f"if {truth} is not {neutral}:"):
                source.line(f"{result} = {truth}")
    return result


def _is_null(source: Source, expression: IsNull) -> str:
    value, result = source.value(expression.operands[0]), source.local()
    source.line(f"{result} = {value} is None")
    return result


def _is_truth(source: Source, expression: IsTruth) -> str:
    truth, result = source.truth(expression.operands[0]), source.local()
    source.line(f"{result} = {truth} is {expression.truth}")
    return result


def _comparison(source: Source, expression: Comparison) -> str:
    left, right = expression.operands
    symbol = expression.operator
    if isinstance(left, Literal):
        left, right, symbol = right, left, MIRRORED[symbol]
    return _compared(source, source.value(left), symbol, right)


def _compared(source: Source, value: str, symbol: str, right: Expression) -> str:
    if isinstance(right, Literal):
        return _with_constant(source, value, symbol, right)
    other, result = source.value(right), source.local()
    order = source.name(ORDERS[symbol])
    source.line(f"{result} = {source.name(compare_counted)}(m, {order}, {value}, {other})")
    return result


def _between(source: Source, expression: Between) -> str:
    subject, low, high = expression.operands
    value, result = source.value(subject), source.local()
    source.line(f"{result} = {_compared(source, value, '>=', low)}")
    with source.block(f"if {result} is not False:"):
        below = _compared(source, value, "<=", high)
        with source.block(f"if {below} is not True:"):
            source.line(f"{result} = {below}")
    return result


def _in(source: Source, expression: In) -> str:
    """Write a search in a set of texts, or a comparison with each element until one is equal."""
    subject, *elements = expression.operands
    value, result = source.value(subject), source.local()
    constants = [each.value for each in elements if isinstance(each, Literal)]
    if len(constants) == len(elements) and all(isinstance(each, str) for each in constants):
        general = f"{source.name(any_equal)}({value}, {source.name(constants)})"
        longest = source.name(max(map(len, map(str, constants))))
        short = f"{source.name(len)}({value}) <= {longest}"
        among = f"{short} and {value} in {source.name(frozenset(map(str, constants)))}"
        text = f"{source.name(type)}({value}) is {source.name(str)}"
        source.line(f"{result} = ({among}) if {text} else {general}")
        return result
    source.line(f"{result} = {_compared(source, value, '=', elements[0])}")
    for element in elements[1:]:
        with source.block(f"if {result} is not True:"):
            equal = _compared(source, value, "=", element)
            with source.block(f"if {equal} is not False:"):
                source.line(f"{result} = {equal}")
    return result


def _like(source: Source, expression: Like) -> str:
    text, result = source.local(), source.local()
    source.line(f"{text} = {source.value(expression.operands[0])}")
    with source.block(f"if {source.name(type)}({text}) is not {source.name(str)}:"):
        source.line(f"{text} = {source.name(to_string)}({text})")
    matches, work = source.name(like_matcher(expression.pattern)), liked(expression.pattern)
    if work is not None:
        with source.block(f"if {text} is not None:"):
            source.line(f"m.spend({source.name(work)}({text}))")
    source.line(f"{result} = None if {text} is None else {matches}({text})")
    return result


def _with_constant(source: Source, value: str, symbol: str, right: Literal) -> str:
    """Write a comparison that checks for the usual types first, as the closure does."""
    constant, order, result = source.name(right.value), source.name(ORDERS[symbol]), source.local()
    general = f"{result} = {source.name(compare)}({order}, {value}, {constant})"
    kind = source.local()
    if type(right.value) is str:
        usual = f"{kind} is {source.name(str)}"
    elif type(right.value) in (int, float):
        usual = f"{kind} is {source.name(float)} or {kind} is {source.name(int)}"
    else:
        source.line(general)
        return result
    source.line(f"{kind} = {source.name(type)}({value})")
    with source.block(f"if {usual}:"):
        source.line(f"{result} = {value} {_SYMBOLS[symbol]} {constant}")
    with source.block("else:"):
        source.line(general)
    return result


CONDITIONS: Final[Writers] = {
    Not: _not,
    And: _and,
    Or: _or,
    IsNull: _is_null,
    IsTruth: _is_truth,
    Comparison: _comparison,
    Between: _between,
    In: _in,
    Like: _like,
}
