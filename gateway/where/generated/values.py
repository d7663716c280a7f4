"""How generated functions work out values: fields, arithmetic, CASE and calls."""

from typing import Final

from gateway.mqtt.message import UNKNOWN
from gateway.where.evaluation.fields import within_limit
from gateway.where.generated.source import Source, Writers
from gateway.where.language.arithmetic import OPERATIONS
from gateway.where.language.conversions import to_number
from gateway.where.language.expression import (
    Arithmetic,
    BareName,
    Call,
    Expression,
    Literal,
    PayloadPath,
    SearchedCase,
    SystemField,
    TopicLevel,
    UserProperty,
)
from gateway.where.language.functions import FUNCTIONS, Function

_ATTRIBUTES: Final = {"clientid": "client_id"}
_PLAIN_FIELDS: Final = frozenset(
    {
        *("topic", "qos", "retain", "clientid", "username", "content_type", "response_topic"),
        *("payload_format", "message_expiry", "received_at"),
    }
)
"""System fields that are an attribute of the message."""


def _literal(source: Source, expression: Literal) -> str:
    return source.name(expression.value)


def _system_field(source: Source, expression: SystemField) -> str:
    result = source.local()
    if expression.name in _PLAIN_FIELDS:
        source.line(f"{result} = m.{_ATTRIBUTES.get(expression.name, expression.name)}")
    elif expression.name == "payload_size":
        source.line(f"{result} = {source.name(len)}(m.payload)")
    else:
        method = "text" if expression.name == "payload" else "correlation_text"
        source.line(f"{result} = m.{method}()")
    return result


def _cached(source: Source, attribute: str, method: str) -> str:
    """Write what the message has worked out before, or works out now."""
    result = source.local()
    source.line(f"{result} = m.{attribute}")
    with source.block(f"if {result} is {source.name(UNKNOWN)}:"):
        source.line(f"{result} = m.{method}()")
    return result


def _topic_level(source: Source, expression: TopicLevel) -> str:
    levels, result = _cached(source, "_levels", "levels"), source.local()
    index, length = source.name(expression.index), source.name(len)
    source.line(f"{result} = {levels}[{index}] if {index} < {length}({levels}) else None")
    return result


def _user_property(source: Source, expression: UserProperty) -> str:
    user, result = _cached(source, "_user", "user"), source.local()
    source.line(f"{result} = {user}.get({source.name(expression.key)})")
    return result


def _bare_name(source: Source, expression: BareName) -> str:
    user, result = _cached(source, "_user", "user"), source.local()
    key = source.name(expression.name)
    with source.block(f"if {key} in {user}:"):
        source.line(f"{result} = {user}[{key}]")
    with source.block("else:"):
        source.line(f"{result} = {_walked(source, (expression.name,))}")
    return result


def _payload_path(source: Source, expression: PayloadPath) -> str:
    return _walked(source, expression.steps)


def _walked(source: Source, steps: tuple[str | int, ...]) -> str:
    result = _cached(source, "_json", "json")
    kind, length = source.name(type), source.name(len)
    for step in steps:
        key = source.name(step)
        if isinstance(step, str):
            found, fits = f"{result}.get({key})", f"is {source.name(dict)}"
        else:
            found = f"{result}[{key}]"
            fits = f"is {source.name(list)} and {key} < {length}({result})"
        source.line(f"{result} = {found} if {kind}({result}) {fits} else None")
    with source.block(f"if {kind}({result}) is {source.name(str)}:"):
        source.line(f"{result} = {source.name(within_limit)}({result})")
    return result


def _arithmetic(source: Source, expression: Arithmetic) -> str:
    """Write a chain flat; None is what every further step leaves as it is."""
    first, *rest = expression.operands
    result = _number(source, first)
    for symbol, operand in zip(expression.operators, rest, strict=True):
        with source.block(f"if {result} is not None:"):
            number = _number(source, operand)
            operate = source.name(OPERATIONS[symbol])
            source.line(f"{result} = None if {number} is None else {operate}({result}, {number})")
    return result


def _number(source: Source, expression: Expression) -> str:
    value, result, kind = source.value(expression), source.local(), source.local()
    real, integer = source.name(float), source.name(int)
    source.line(f"{result} = {value}")
    source.line(f"{kind} = {source.name(type)}({value})")
    with source.block(f"if {kind} is not {real} and {kind} is not {integer}:"):
        source.line(f"{result} = {source.name(to_number)}({value})")
    return result


def _searched_case(source: Source, expression: SearchedCase) -> str:
    *pairs, otherwise = expression.operands
    result, decided = source.local(), source.local()
    source.line(f"{decided} = False")
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        with source.block(f"if {decided} is False:"):
            holds = source.truth(condition)
            with source.block(f"if {holds}:"):
                source.line(f"{result} = {source.value(value)}")
                source.line(f"{decided} = True")
    with source.block(f"if {decided} is False:"):
        source.line(f"{result} = {source.value(otherwise)}")
    return result


def _call(source: Source, expression: Call) -> str:
    function = FUNCTIONS[expression.function]
    result = source.local()
    if function.compute is FUNCTIONS["COALESCE"].compute:
        source.line(f"{result} = None")
        for operand in expression.operands:
            with source.block(f"if {result} is None:"):
                source.line(f"{result} = {source.value(operand)}")
        return result
    values = []
    for index, operand in enumerate(expression.operands):
        convert, value = source.name(function.conversion(index)), source.local()
        source.line(f"{value} = {convert}({source.value(operand)})")
        values.append(value)
    arguments = ", ".join(values)
    called = f"{result} = {source.name(function.compute)}({arguments})"
    if function.strict:
        source.line(f"{result} = None")
        known = " and ".join(f"{value} is not None" for value in values)
        with source.block(f"if {known}:"):
            _count(source, function, arguments)
            source.line(called)
    else:
        _count(source, function, arguments)
        source.line(called)
    return result


def _count(source: Source, function: Function, arguments: str) -> None:
    """Write what counts the work of a call that is about to be made."""
    if function.work is not None:
        source.line(f"m.spend({source.name(function.work)}({arguments}))")


VALUES: Final[Writers] = {
    Literal: _literal,
    SystemField: _system_field,
    TopicLevel: _topic_level,
    UserProperty: _user_property,
    BareName: _bare_name,
    PayloadPath: _payload_path,
    Arithmetic: _arithmetic,
    SearchedCase: _searched_case,
    Call: _call,
}
