"""What a node of the tree is compiled to: fields, arithmetic, CASE, CAST and calls."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Protocol

from gateway.mqtt.message import STRING_CODE_POINTS, UNCOUNTED, UNKNOWN, Message
from gateway.where.language.conversions import ORDERS, Number, Order, Value, compare, to_number
from gateway.where.language.expression import (
    Arithmetic,
    BareName,
    Call,
    Cast,
    Expression,
    PayloadPath,
    SearchedCase,
    Sign,
    SimpleCase,
    SystemField,
    TopicLevel,
    UserProperty,
)
from gateway.where.language.functions import CASTS, FUNCTIONS, OPERATIONS, negate
from gateway.where.language.work import compared

Reader = Callable[[Message], Value]
"""Gives the value of an expression for a message; never raises."""

Condition = Callable[[Message], bool | None]
"""Gives the TO_BOOLEAN of an expression for a message; never raises."""


class Compiler(Protocol):
    """Compiles the operands of the node at hand."""

    def value(self, expression: Expression) -> Reader:
        """Return a closure that gives the value of `expression`."""

    def shares(self, expression: Expression) -> bool:
        """Say whether other expressions have this part, too: then its closure knows the value."""

    def truth(self, expression: Expression) -> Condition:
        """Return a closure that gives the TO_BOOLEAN of `expression`."""


Builder = Callable[[Any, Compiler], Callable[[Message], Any]]
"""Compiles one kind of node."""


def _payload_size(message: Message) -> int:
    return len(message.payload)


_SYSTEM_FIELDS: Final[dict[str, Reader]] = {
    "topic": attrgetter("topic"),
    "qos": attrgetter("qos"),
    "retain": attrgetter("retain"),
    "clientid": attrgetter("client_id"),
    "username": attrgetter("username"),
    "payload": Message.text,
    "content_type": attrgetter("content_type"),
    "response_topic": attrgetter("response_topic"),
    "correlation_data": Message.correlation_text,
    "payload_size": _payload_size,
    "payload_format": attrgetter("payload_format"),
    "message_expiry": attrgetter("message_expiry"),
    "received_at": attrgetter("received_at"),
}


def system_field(field: SystemField, _: Compiler) -> Reader:
    """Read a field of where-language 6.1."""
    return _SYSTEM_FIELDS[field.name]


def topic_level(field: TopicLevel, _: Compiler) -> Reader:
    """Read `topic[index]`."""
    index = field.index

    def level(message: Message) -> str | None:
        levels = message.levels()
        return levels[index] if index < len(levels) else None

    return level


def user_property(field: UserProperty, _: Compiler) -> Reader:
    """Read `$user.key`."""
    key = field.key
    return lambda message: message.user().get(key)


def bare_name(field: BareName, _: Compiler) -> Reader:
    """Read a user property or else a payload member."""
    name = field.name
    payload_member = _payload_member(name)

    def property_or_member(message: Message) -> Value:
        user = message.user()
        return user[name] if name in user else payload_member(message)

    return property_or_member


def payload_path(field: PayloadPath, _: Compiler) -> Reader:
    """Read `payload.a[0]`; a path of one key is most of them and has no loop."""
    steps = field.steps
    first = steps[0]
    if len(steps) == 1 and isinstance(first, str):
        return _payload_member(first)
    return lambda message: _walk(message.json(), steps)


def _payload_member(key: str) -> Reader:
    """Read one member: what most filters do, without a call that can be spared."""

    def member(message: Message) -> Value:
        container = message._json  # noqa: SLF001 - decoded, if anybody has asked
        if container is UNKNOWN:
            container = message.json()
        if type(container) is not dict:
            return None
        value: Value = container.get(key)
        return None if type(value) is str and len(value) > STRING_CODE_POINTS else value

    return member


def _walk(container: Any, steps: tuple[str | int, ...]) -> Value:
    for step in steps:
        if isinstance(step, str):
            container = container.get(step) if type(container) is dict else None
        elif type(container) is list and step < len(container):
            container = container[step]
        else:
            return None
    return within_limit(container)


def within_limit(value: Any) -> Value:
    """Hold a JSON string against the STRING limit (where-language 4)."""
    return None if type(value) is str and len(value) > STRING_CODE_POINTS else value


def arithmetic(expression: Arithmetic, compiler: Compiler) -> Reader:
    """Compile a chain of `+ -` or `* / %`; flat, so that a long one costs no stack."""
    first, *rest = map(compiler.value, expression.operands)
    operations = map(OPERATIONS.__getitem__, expression.operators)
    steps = tuple(zip(operations, rest, strict=True))

    def evaluate(message: Message) -> Number | None:
        result = to_number(first(message))
        for operate, value in steps:
            operand = to_number(value(message))
            if result is None or operand is None:
                return None
            result = operate(result, operand)
        return result

    return evaluate


def sign(expression: Sign, compiler: Compiler) -> Reader:
    """Compile unary `+`, which is TO_NUMBER, and unary `-`."""
    value = compiler.value(expression.operands[0])
    if expression.sign == "+":
        return lambda message: to_number(value(message))

    def evaluate(message: Message) -> Number | None:
        number = to_number(value(message))
        return None if number is None else negate(number)

    return evaluate


def searched_case(expression: SearchedCase, compiler: Compiler) -> Reader:
    """Compile CASE WHEN: the first condition that is TRUE."""
    *pairs, otherwise = expression.operands
    conditions: list[Condition] = list(map(compiler.truth, pairs[::2]))
    results = list(map(compiler.value, pairs[1::2]))
    branches = tuple(zip(conditions, results, strict=True))
    default = compiler.value(otherwise)

    def evaluate(message: Message) -> Value:
        for condition, result in branches:
            if condition(message):
                return result(message)
        return default(message)

    return evaluate


def simple_case(expression: SimpleCase, compiler: Compiler) -> Reader:
    """Compile CASE x WHEN: the first value that x is equal to."""
    subject, *pairs, default = map(compiler.value, expression.operands)
    branches = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    equal = ORDERS["="]

    def evaluate(message: Message) -> Value:
        wanted = subject(message)
        for value, result in branches:
            if compare_counted(message, equal, wanted, value(message)):
                return result(message)
        return default(message)

    return evaluate


def cast(expression: Cast, compiler: Compiler) -> Reader:
    """Compile CAST."""
    value = compiler.value(expression.operands[0])
    convert = CASTS[expression.to]
    return lambda message: convert(value(message))


def call(expression: Call, compiler: Compiler) -> Reader:
    """Compile a call of one of FUNCTIONS."""
    function = FUNCTIONS[expression.function]
    compute, strict, work = function.compute, function.strict, function.work
    arguments = tuple(
        (function.conversion(index), compiler.value(operand))
        for index, operand in enumerate(expression.operands)
    )

    def evaluate(message: Message) -> Value:
        values: list[Value] = []
        for convert, read in arguments:
            value = convert(read(message))
            if strict and value is None:
                return None
            values.append(value)
        if work is not None:
            cost = work(*values)
            if cost > UNCOUNTED:
                message.spend(cost)
        return compute(*values)

    return evaluate


def compare_counted(message: Message, order: Order, left: Value, right: Value) -> bool | None:
    """Compare two values neither of which stands in the expression, and count that for them."""
    if type(left) is str and len(left) > UNCOUNTED and type(right) is str:
        message.spend(compared(left, right))
    return compare(order, left, right)
