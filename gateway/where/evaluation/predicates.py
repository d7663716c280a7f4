"""Closures for what is TRUE, FALSE or NULL (where-language 5, 7 and 8)."""

from collections.abc import Iterable
from typing import Final

from gateway.mqtt.message import UNCOUNTED, Message
from gateway.where.evaluation.closures import Compiler, Condition, Reader, compare_counted
from gateway.where.language.conversions import MIRRORED, ORDERS, Order, Value, compare, to_string
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
    TopicMatches,
)
from gateway.where.language.like import like_matcher
from gateway.where.language.work import liked


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
    """Compile a comparison; beside a constant the usual types skip the general rule."""
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
    """Say whether the operand is equal to an element; None if that is NULL."""
    result: bool | None = False
    for element in elements:
        equal = compare(_EQUAL, operand, element)
        if equal:
            return True
        if equal is None:
            result = None
    return result


def _any_equal_read(message: Message, operand: Value, readers: Iterable[Reader]) -> bool | None:
    """Do the same for elements that have to be read, each while none before it is equal."""
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
