"""An evaluator that walks the tree: slow, close to the words of where-language, and an oracle.

It shares the conversions, the functions and the operations on two numbers with the gateway,
which have tests of their own; fields, logic, comparison, LIKE and the choice of branches are
written anew.
"""

from fractions import Fraction
from functools import singledispatch
from typing import Any

from gateway.mqtt.message import Message
from gateway.where.language.conversions import Value, to_boolean, to_number, to_string
from gateway.where.language.expression import (
    And,
    Arithmetic,
    BareName,
    Between,
    Call,
    Cast,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Not,
    Or,
    PayloadPath,
    SearchedCase,
    Sign,
    SimpleCase,
    SystemField,
    TopicLevel,
    TopicMatches,
    UserProperty,
    Wildcard,
)
from gateway.where.language.functions import CASTS, FUNCTIONS, OPERATIONS, negate
from gateway.where.language.parser import parse
from tests.support.naive.like import like
from tests.support.naive.matcher import matches

_MESSAGE_ATTRIBUTES = {"clientid": "client_id"}


def walk(text: str, message: Message) -> bool | None:
    return to_boolean(value_of(parse(text), message))


@singledispatch
def value_of(node: Expression, message: Message) -> Value:
    raise NotImplementedError


@value_of.register
def _(node: Literal, message: Message) -> Value:
    return node.value


@value_of.register
def _(node: SystemField, message: Message) -> Value:
    if node.name == "payload":
        return _text_or_null(message.payload)
    if node.name == "payload_size":
        return len(message.payload)
    if node.name == "correlation_data":
        data = message.correlation_data
        return None if data is None else _text_or_null(data)
    value: Value = getattr(message, _MESSAGE_ATTRIBUTES.get(node.name, node.name))
    return value


def _text_or_null(data: bytes) -> str | None:
    text = data.decode(errors="replace")
    return text if len(text) <= 65_535 and text.encode() == data else None


@value_of.register
def _(node: TopicLevel, message: Message) -> Value:
    return dict(enumerate(message.topic.split("/"))).get(node.index)


@value_of.register
def _(node: UserProperty, message: Message) -> Value:
    return next((v for k, v in reversed(message.user_properties) if k == node.key), None)


@value_of.register
def _(node: BareName, message: Message) -> Value:
    if any(key == node.name for key, _ in message.user_properties):
        return value_of(UserProperty(node.name), message)
    return value_of(PayloadPath((node.name,)), message)


@value_of.register
def _(node: PayloadPath, message: Message) -> Value:
    value: Any = message.json()
    for step in node.steps:
        wanted = dict if isinstance(step, str) else list
        members = value if isinstance(value, wanted) else {}
        value = dict(members if wanted is dict else enumerate(members)).get(step)
    return None if isinstance(value, str) and len(value) > 65_535 else value


@value_of.register
def _(node: Not, message: Message) -> Value:
    return _negated(to_boolean(value_of(node.operands[0], message)))


def _negated(truth: bool | None) -> bool | None:
    return {True: False, False: True, None: None}[truth]


@value_of.register
def _(node: And, message: Message) -> Value:
    return _all(*(to_boolean(value_of(operand, message)) for operand in node.operands))


def _all(*truths: bool | None) -> bool | None:
    return False if False in truths else None if None in truths else True


@value_of.register
def _(node: Or, message: Message) -> Value:
    return _any(*(to_boolean(value_of(operand, message)) for operand in node.operands))


def _any(*truths: bool | None) -> bool | None:
    return _negated(_all(*map(_negated, truths)))


@value_of.register
def _(node: IsNull, message: Message) -> Value:
    return value_of(node.operands[0], message) is None


@value_of.register
def _(node: IsTruth, message: Message) -> Value:
    return to_boolean(value_of(node.operands[0], message)) is node.truth


@value_of.register
def _(node: Comparison, message: Message) -> Value:
    left, right = (value_of(operand, message) for operand in node.operands)
    return compared(node.operator, left, right)


def compared(operator: str, left: Value, right: Value) -> bool | None:
    sign = _sign(left, right)
    if sign is None:
        return None
    wanted = {"=": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}
    return sign in wanted[operator]


def _sign(left: Value, right: Value) -> int | None:
    """Give -1, 0 or 1; by code points, or exactly as fractions."""
    pair: list[Any]
    kinds = {type(left), type(right)}
    if kinds == {str}:
        pair = [list(map(ord, str(left))), list(map(ord, str(right)))]
    elif kinds in ({bool}, {bool, str}):
        pair = [to_boolean(left), to_boolean(right)]
    else:
        numbers = [to_number(left), to_number(right)]
        pair = [None if number is None else Fraction(number) for number in numbers]
    if None in pair:
        return None
    return 0 if pair[0] == pair[1] else 1 if pair[0] > pair[1] else -1


@value_of.register
def _(node: In, message: Message) -> Value:
    wanted, *elements = (value_of(operand, message) for operand in node.operands)
    return _any(*(compared("=", wanted, element) for element in elements))


@value_of.register
def _(node: Between, message: Message) -> Value:
    value, low, high = (value_of(operand, message) for operand in node.operands)
    return _all(compared(">=", value, low), compared("<=", value, high))


@value_of.register
def _(node: Like, message: Message) -> Value:
    text = to_string(value_of(node.operands[0], message))
    if text is None:
        return None
    pattern = "".join(
        element.value if isinstance(element, Wildcard) else "\0" + element
        for element in node.pattern
    )
    return like(text, pattern, "\0")


@value_of.register
def _(node: TopicMatches, message: Message) -> Value:
    return matches(node.topic_filter, message.topic)


@value_of.register
def _(node: Arithmetic, message: Message) -> Value:
    result, *operands = (to_number(value_of(operand, message)) for operand in node.operands)
    for operator, operand in zip(node.operators, operands, strict=True):
        if result is None or operand is None:
            return None
        result = OPERATIONS[operator](result, operand)
    return result


@value_of.register
def _(node: Sign, message: Message) -> Value:
    number = to_number(value_of(node.operands[0], message))
    return number if number is None or node.sign == "+" else negate(number)


@value_of.register
def _(node: SearchedCase, message: Message) -> Value:
    *branches, otherwise = node.operands
    for condition, result in zip(branches[::2], branches[1::2], strict=True):
        if to_boolean(value_of(condition, message)) is True:
            return value_of(result, message)
    return value_of(otherwise, message)


@value_of.register
def _(node: SimpleCase, message: Message) -> Value:
    subject, *branches, otherwise = node.operands
    for value, result in zip(branches[::2], branches[1::2], strict=True):
        equal = compared("=", value_of(subject, message), value_of(value, message))
        if equal is True:
            return value_of(result, message)
    return value_of(otherwise, message)


@value_of.register
def _(node: Cast, message: Message) -> Value:
    return CASTS[node.to](value_of(node.operands[0], message))


@value_of.register
def _(node: Call, message: Message) -> Value:
    function = FUNCTIONS[node.function]
    arguments = [
        function.conversion(index)(value_of(operand, message))
        for index, operand in enumerate(node.operands)
    ]
    if function.strict and any(argument is None for argument in arguments):
        return None
    return function.compute(*arguments)
