"""Compiles the nodes of a tree to closures (where-language 5, 7 and 8)."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, Protocol

from gateway.mqtt.message import STRING_CODE_POINTS, UNCOUNTED, UNKNOWN, Message, parse_json
from gateway.where.language.conversions import (
    MIRRORED,
    ORDERS,
    Number,
    Order,
    Value,
    compare,
    to_number,
    to_string,
)
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
)
from gateway.where.language.functions import CASTS, FUNCTIONS, OPERATIONS, negate
from gateway.where.language.like import like_matcher
from gateway.where.language.work import compared, liked

Reader = Callable[[Message], Value]
"""Returns the value of an expression for a message; never raises."""

Condition = Callable[[Message], bool | None]
"""Returns the TO_BOOLEAN of an expression for a message; never raises."""


class Compiler(Protocol):
    """Compiles the operands of the present node."""

    def value(self, expression: Expression) -> Reader:
        """Return a closure that returns the value of `expression`."""

    def shares(self, expression: Expression) -> bool:
        """Return whether other expressions have this part, too: then its closure has the value."""

    def truth(self, expression: Expression) -> Condition:
        """Return a closure that returns the TO_BOOLEAN of `expression`."""


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
    """Read one member, as most filters do, with as few calls as possible."""

    def member(message: Message) -> Value:
        container = message._json  # noqa: SLF001 - decoded, if anybody has needed it
        if container is UNKNOWN:
            container = message._json = parse_json(message.payload)  # noqa: SLF001 - as `json`
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
    return limited_string(container)


def limited_string(value: Any) -> Value:
    """Check a JSON string against the STRING limit (where-language 4)."""
    return None if type(value) is str and len(value) > STRING_CODE_POINTS else value


def arithmetic(expression: Arithmetic, compiler: Compiler) -> Reader:
    """Compile a chain of `+ -` or `* / %`; flat, so that a long one needs no stack."""
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
    """Compile CASE x WHEN: the first value that equals x."""
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
    """Compare two values neither of which is in the expression, and count the work for them."""
    if type(left) is str and len(left) > UNCOUNTED and type(right) is str:
        message.spend(compared(left, right))
    return compare(order, left, right)


def negation(expression: Not, compiler: Compiler) -> Condition:
    """Compile NOT."""
    truth = compiler.truth(expression.operands[0])

    def evaluate(message: Message) -> bool | None:
        result = truth(message)
        return None if result is None else not result

    return evaluate


def conjunction(expression: And, compiler: Compiler) -> Condition:
    """Compile AND: the first FALSE decides."""
    return _first_deciding(expression, compiler, decision=False)


def disjunction(expression: Or, compiler: Compiler) -> Condition:
    """Compile OR: the first TRUE decides."""
    return _first_deciding(expression, compiler, decision=True)


def _first_deciding(expression: Expression, compiler: Compiler, *, decision: bool) -> Condition:
    truths = tuple(map(compiler.truth, expression.operands))
    undecided = not decision

    def evaluate(message: Message) -> bool | None:
        result: bool | None = undecided
        for truth in truths:
            operand = truth(message)
            if operand is decision:
                return decision
            if operand is None:
                result = None
        return result

    return evaluate


def is_null(expression: IsNull, compiler: Compiler) -> Condition:
    """Compile IS NULL."""
    value = compiler.value(expression.operands[0])
    return lambda message: value(message) is None


def is_truth(expression: IsTruth, compiler: Compiler) -> Condition:
    """Compile IS TRUE and IS FALSE."""
    truth = compiler.truth(expression.operands[0])
    wanted = expression.truth
    return lambda message: truth(message) is wanted


_EQUAL: Final = ORDERS["="]

_UNCONVERTED: Final[dict[type, tuple[type, type]]] = {
    str: (str, str),
    int: (float, int),
    float: (float, int),
}
"""By the type of a constant, the two types that are compared with it without a conversion."""


def comparison(expression: Comparison, compiler: Compiler) -> Condition:
    """Compile a comparison; with a constant the usual types skip the general rule."""
    left, right = expression.operands
    symbol = expression.operator
    if isinstance(left, Literal):
        left, right, symbol = right, left, MIRRORED[symbol]
    order = ORDERS[symbol]
    value = compiler.value(left)
    if isinstance(right, Literal):
        return _with_constant(value, order, right.value)
    other = compiler.value(right)
    return lambda message: compare_counted(message, order, value(message), other(message))


def _with_constant(value: Reader, order: Order, constant: Value) -> Condition:
    one_kind, other_kind = _UNCONVERTED.get(type(constant), (None, None))

    def evaluate(message: Message) -> bool | None:
        operand = value(message)
        kind = type(operand)
        if kind is one_kind or kind is other_kind:
            return order(operand, constant)
        return compare(order, operand, constant)

    return evaluate


def membership(expression: In, compiler: Compiler) -> Condition:
    """Compile IN; a text among text constants is one search in a set."""
    value = compiler.value(expression.operands[0])
    elements = expression.operands[1:]
    constants = [element.value for element in elements if isinstance(element, Literal)]
    if len(constants) < len(elements):
        readers = tuple(map(compiler.value, elements))
        return lambda message: _any_equal_read(message, value(message), readers)
    if all(isinstance(constant, str) for constant in constants):
        return _in_texts(value, constants)
    return lambda message: any_equal(value(message), constants)


def _in_texts(value: Reader, constants: list[Value]) -> Condition:
    texts = frozenset(constant for constant in constants if isinstance(constant, str))
    longest = max(map(len, texts))

    def evaluate(message: Message) -> bool | None:
        operand = value(message)
        if type(operand) is str:
            return len(operand) <= longest and operand in texts  # a search hashes it
        return any_equal(operand, constants)

    return evaluate


def any_equal(operand: Value, elements: Iterable[Value]) -> bool | None:
    """Return whether the operand equals an element; None if that is NULL."""
    result: bool | None = False
    for element in elements:
        equal = compare(_EQUAL, operand, element)
        if equal:
            return True
        if equal is None:
            result = None
    return result


def _any_equal_read(message: Message, operand: Value, readers: Iterable[Reader]) -> bool | None:
    """Do the same for elements that must be read, each only while none before it is equal."""
    result: bool | None = False
    for read in readers:
        equal = compare_counted(message, _EQUAL, operand, read(message))
        if equal:
            return True
        if equal is None:
            result = None
    return result


def between(expression: Between, compiler: Compiler) -> Condition:
    """Compile BETWEEN: two comparisons joined by AND."""
    value, low, high = map(compiler.value, expression.operands)
    at_least, at_most = ORDERS[">="], ORDERS["<="]
    if all(isinstance(bound, Literal) for bound in expression.operands[1:]):
        return _between_constants(value, low, high)

    def evaluate(message: Message) -> bool | None:
        operand = value(message)
        above = compare_counted(message, at_least, operand, low(message))
        if above is False:
            return False
        below = compare_counted(message, at_most, operand, high(message))
        return below if above or below is False else None

    return evaluate


def _between_constants(value: Reader, low: Reader, high: Reader) -> Condition:
    at_least, at_most = ORDERS[">="], ORDERS["<="]

    def evaluate(message: Message) -> bool | None:
        operand = value(message)
        above = compare(at_least, operand, low(message))
        if above is False:
            return False
        below = compare(at_most, operand, high(message))
        return below if above or below is False else None

    return evaluate


def like(expression: Like, compiler: Compiler) -> Condition:
    """Compile LIKE."""
    value = compiler.value(expression.operands[0])
    matches, work = like_matcher(expression.pattern), liked(expression.pattern)

    def evaluate(message: Message) -> bool | None:
        text = to_string(value(message))
        if text is None:
            return None
        if work is not None:
            cost = work(text)
            if cost > UNCOUNTED:
                message.spend(cost)
        return matches(text)

    return evaluate


def topic_matches(expression: TopicMatches, _: Compiler) -> Condition:
    """Compile TOPIC_MATCHES; the filter is split once (MQTT 5, section 4.7)."""
    topic_filter = expression.topic_filter
    levels = topic_filter.split("/")
    has_rest = levels[-1] == "#"  # and matches the parent level, too (section 4.7.1.2)
    if has_rest:
        levels.pop()
    count = len(levels)
    named = tuple((place, level) for place, level in enumerate(levels) if level != "+")
    starts_with_wildcard = topic_filter[0] in "+#"

    def evaluate(message: Message) -> bool:
        if starts_with_wildcard and message.topic.startswith("$"):  # [MQTT-4.7.2-1]
            return False
        names = message.levels()
        if len(names) != count and not (has_rest and len(names) > count):
            return False
        for place, level in named:  # noqa: SIM110 - all() would make a generator each time
            if names[place] != level:
                return False
        return True

    return evaluate
