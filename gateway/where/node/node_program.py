"""Encodes the part of an expression that a node evaluates, as in docs/understand/node-filter.md."""

import struct
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Final

from gateway.where.language.conversions import Value, to_number
from gateway.where.language.expression import (
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    PayloadPath,
    Stateful,
)
from gateway.where.language.functions import multiply
from gateway.where.node.push_down import VALUE

VERSION: Final = 1

PROGRAM_MAX: Final = 200
"""Bytes of a program: with an address it fits into a frame of the serial protocol."""

STACK_MAX: Final = 8
"""Truth values that wait for an AND or OR."""

TRUTH: Final = 0x10
IS_NULL: Final = 0x11
COMPARE: Final = {"=": 0x20, "!=": 0x21, "<": 0x22, "<=": 0x23, ">": 0x24, ">=": 0x25}
NOT: Final = 0x30
AND: Final = 0x31
OR: Final = 0x32
IS_TRUE: Final = 0x33
IS_FALSE: Final = 0x34
IS_UNKNOWN: Final = 0x35
DEADBAND: Final = 0x40
EVERY: Final = 0x41

_VALUE, _UNIT, _NULL, _FALSE, _TRUE, _INTEGER, _REAL, _STRING = range(8)
_MILLISECONDS: Final = 1000

_Instruction = bytes
_Encoder = Callable[[Any], Iterator[_Instruction]]


class ProgramLimitError(ValueError):
    """The expression is too long or too deep for a node: the gateway must evaluate it."""


def encode_program(expression: Expression) -> bytes:
    """Return the program of a Split's `node`.

    Raises ProgramLimitError if it exceeds a limit, TypeError for an unsupported part.
    """
    instructions = list(_condition(expression))
    program = bytes([VERSION]) + b"".join(instructions)
    if len(program) > PROGRAM_MAX:
        raise ProgramLimitError(f"a program of {len(program)} bytes: at most {PROGRAM_MAX}")
    depth = _depth(instructions)
    if depth > STACK_MAX:
        raise ProgramLimitError(f"a program that needs a stack of {depth}: at most {STACK_MAX}")
    return program


def _depth(instructions: list[_Instruction]) -> int:
    depth = highest = 0
    for instruction in instructions:
        depth += _EFFECT.get(instruction[0], 1)
        highest = max(highest, depth)
    return highest


_EFFECT: Final = {NOT: 0, IS_TRUE: 0, IS_FALSE: 0, IS_UNKNOWN: 0, AND: -1, OR: -1}
"""The change of the stack's height by an instruction, if it is not one."""


def _condition(expression: Expression) -> Iterator[_Instruction]:
    encode = _CONDITIONS.get(type(expression))
    if encode is None:
        yield bytes([TRUTH]) + _operand(expression)
    else:
        yield from encode(expression)


def _operand(expression: Expression) -> bytes:
    if isinstance(expression, PayloadPath):
        return bytes([_VALUE if expression.steps == VALUE else _UNIT])
    if not isinstance(expression, Literal):
        raise _foreign(expression)
    return _constant(expression.value)


def _foreign(expression: Expression) -> TypeError:
    return TypeError(f"{type(expression).__name__}: push_down gives a node no such part")


def _constant(value: Value) -> bytes:
    if isinstance(value, bool):
        return bytes([_TRUE if value else _FALSE])
    if isinstance(value, int):
        return struct.pack("<Bq", _INTEGER, value)
    if isinstance(value, float):
        return struct.pack("<Bd", _REAL, value)
    if isinstance(value, str):
        text = value.encode()
        return bytes([_STRING, len(text)]) + text
    return bytes([_NULL])


def _joined(opcode: int, conditions: Iterator[Iterator[_Instruction]]) -> Iterator[_Instruction]:
    """Yield the first, and after each further one the instruction that joins it."""
    for count, condition in enumerate(conditions):
        yield from condition
        if count:
            yield bytes([opcode])


def _comparisons(
    opcode: int, subject: Expression, others: list[tuple[str, Expression]]
) -> Iterator[_Instruction]:
    left = _operand(subject)
    comparisons = (bytes([COMPARE[order]]) + left + _operand(right) for order, right in others)
    return _joined(opcode, map(iter, zip(comparisons)))


def _and(expression: And) -> Iterator[_Instruction]:
    return _joined(AND, map(_condition, expression.operands))


def _or(expression: Or) -> Iterator[_Instruction]:
    return _joined(OR, map(_condition, expression.operands))


def _not(expression: Not) -> Iterator[_Instruction]:
    yield from _condition(expression.operands[0])
    yield bytes([NOT])


def _is_null(expression: IsNull) -> Iterator[_Instruction]:
    (operand,) = expression.operands
    if isinstance(operand, Literal | PayloadPath):
        yield bytes([IS_NULL]) + _operand(operand)
    else:
        yield from _condition(operand)
        yield bytes([IS_UNKNOWN])


def _is_truth(expression: IsTruth) -> Iterator[_Instruction]:
    yield from _condition(expression.operands[0])
    yield bytes([IS_TRUE if expression.truth else IS_FALSE])


def _comparison(expression: Comparison) -> Iterator[_Instruction]:
    left, right = expression.operands
    return _comparisons(AND, left, [(expression.operator, right)])


def _in(expression: In) -> Iterator[_Instruction]:
    subject, *elements = expression.operands
    return _comparisons(OR, subject, list(zip(repeat("="), elements)))


def _between(expression: Between) -> Iterator[_Instruction]:
    subject, low, high = expression.operands
    return _comparisons(AND, subject, [(">=", low), ("<=", high)])


def _stateful(expression: Stateful) -> Iterator[_Instruction]:
    literal = expression.operands[-1]
    number = to_number(literal.value) if isinstance(literal, Literal) else None
    if number is None:
        raise _foreign(expression)
    if expression.function == "DEADBAND":
        yield bytes([DEADBAND]) + _constant(number)
    else:
        yield bytes([EVERY]) + _constant(multiply(number, _MILLISECONDS))


_CONDITIONS: Final[dict[type[Expression], _Encoder]] = {
    And: _and,
    Or: _or,
    Not: _not,
    IsNull: _is_null,
    IsTruth: _is_truth,
    Comparison: _comparison,
    In: _in,
    Between: _between,
    Stateful: _stateful,
}
