"""Closures for arithmetic, CASE, CAST and calls (where-language 7 and 8)."""

from gateway.mqtt.message import UNCOUNTED, Message
from gateway.where.evaluation.closures import Compiler, Condition, Reader
from gateway.where.evaluation.predicates import compare_counted
from gateway.where.language.arithmetic import OPERATIONS, negate
from gateway.where.language.comparison import ORDERS
from gateway.where.language.conversions import Number, Value, to_number
from gateway.where.language.expression import (
    Arithmetic,
    Call,
    Cast,
    SearchedCase,
    Sign,
    SimpleCase,
)
from gateway.where.language.functions import CASTS, FUNCTIONS


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
