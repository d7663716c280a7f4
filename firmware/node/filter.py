"""Decides which readings a node sends, by a program from the gateway (docs, node-filter.md)."""

import struct

from . import const, reals

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    Operand = bool | int | str | reals.Real | None
    Value = bool | int | float | str | tuple[int, int]

_VERSION = const(1)

_PROGRAM_MAX = const(200)
"""Bytes of a program: with an address it fits a frame."""

_STACK_MAX = const(8)
"""Truth values that wait for an AND or OR."""

_TRUTH = const(0x10)
_IS_NULL = const(0x11)
_COMPARE = const(0x20)  # and the five after it
_NOT = const(0x30)
_AND = const(0x31)
_OR = const(0x32)
_IS_TRUE = const(0x33)
_IS_FALSE = const(0x34)
_IS_UNKNOWN = const(0x35)
_DEADBAND = const(0x40)
_EVERY = const(0x41)

_VALUE = const(0)
_UNIT = const(1)
_NULL = const(2)
_FALSE = const(3)
_TRUE = const(4)
_INTEGER = const(5)
_REAL = const(6)
_STRING = const(7)

_COMPARISONS = const(6)
_OPERANDS = {_TRUTH: 1, _IS_NULL: 1, _DEADBAND: 1, _EVERY: 1}
_OPERANDS.update({_COMPARE + order: 2 for order in range(_COMPARISONS)})
_TAKES = {_NOT: 1, _AND: 2, _OR: 2, _IS_TRUE: 1, _IS_FALSE: 1, _IS_UNKNOWN: 1}
_CONSTANTS = {_NULL: None, _FALSE: False, _TRUE: True}


class Filter:
    """A program with what it remembers of one quantity's readings.

    ValueError for a program of another version, or one that is not whole: a node that gets one
    goes on sending everything. After that nothing can go wrong any more.
    """

    def __init__(self, program: bytes) -> None:
        if not 2 <= len(program) <= _PROGRAM_MAX:
            raise ValueError("a program of %d bytes: 2 to %d" % (len(program), _PROGRAM_MAX))
        if program[0] != _VERSION:
            raise ValueError("program version %d: %d is known" % (program[0], _VERSION))
        _verify(program)
        self._program = program
        self._sent: Operand = None
        self._sent_at: int | None = None

    def passes(self, value: "Value", unit: "str | None", now: int) -> bool:
        """Say whether a reading is sent, and remember it if so.

        `value` is as for `encode_reading`, `now` the node's clock in milliseconds.
        """
        if self.evaluate(value, unit, now) is not True:
            return False
        self.remember(value, now)
        return True

    def remember(self, value: "Value", now: int) -> None:
        """Take note of a reading that is sent, whatever the program says of it."""
        self._sent, self._sent_at = _operand(value), now

    def evaluate(self, value: "Value", unit: "str | None", now: int) -> "bool | None":
        """Return TRUE, FALSE or NULL (None) for a reading, and remember nothing."""
        reading, unit = _operand(value), unit or None
        stack: list[bool | None] = []
        position = 1
        while position < len(self._program):
            opcode = self._program[position]
            found, position = _read_operands(self._program, position, reading, unit)
            if opcode in _TAKES:
                _combine(opcode, stack)
            else:
                stack.append(self._leaf(opcode, found, reading, now))
        return stack[0]

    def _leaf(
        self, opcode: int, found: "list[Operand]", value: "Operand", now: int
    ) -> "bool | None":
        if opcode == _TRUTH:
            return _to_boolean(found[0])
        if opcode == _IS_NULL:
            return found[0] is None
        if opcode == _DEADBAND:
            return self._deadband(_to_number(value), _to_number(found[0]))
        if opcode == _EVERY:
            interval = _to_number(found[0])
            if self._sent_at is None:
                return True
            if interval is None:  # of more seconds than there are numbers
                return None
            return reals.compare(now - self._sent_at, interval) >= 0
        return _compare(opcode - _COMPARE, found[0], found[1])

    def _deadband(
        self, value: "reals.Number | None", width: "reals.Number | None"
    ) -> "bool | None":
        if value is None or width is None:
            return False
        sent = _to_number(self._sent)
        if sent is None:
            return True
        distance = reals.distance(value, sent)
        return None if distance is None else reals.compare(distance, width) >= 0


def _operand(value: "Value") -> "Operand":
    """Return a reading's value as the gateway will see it."""
    if isinstance(value, float):
        return reals.from_binary64(struct.pack("<d", value))
    if isinstance(value, tuple):
        mantissa, exponent = value
        return mantissa * 10**exponent if exponent >= 0 else reals.from_decimal(mantissa, exponent)
    return value


def _to_number(operand: "Operand") -> "reals.Number | None":
    if operand is True or operand is False:
        return int(operand)
    return reals.read_number(operand) if isinstance(operand, str) else operand


def _to_boolean(operand: "Operand") -> "bool | None":
    if operand is None or operand is True or operand is False:
        return operand
    if isinstance(operand, str):
        return {"true": True, "false": False}.get(operand.lower())
    return (operand[0] if isinstance(operand, tuple) else operand) != 0


def _compare(order: int, left: "Operand", right: "Operand") -> "bool | None":
    if isinstance(left, str) and isinstance(right, str):
        return _in_order(order, (left > right) - (left < right))
    if isinstance(left, (bool, str)) and isinstance(right, (bool, str)):
        one, other = _to_boolean(left), _to_boolean(right)
        return None if one is None or other is None else _in_order(order, one - other)
    first, second = _to_number(left), _to_number(right)
    if first is None or second is None:
        return None
    return _in_order(order, reals.compare(first, second))


def _in_order(order: int, sign: int) -> bool:
    return (sign == 0, sign != 0, sign < 0, sign <= 0, sign > 0, sign >= 0)[order]


def _combine(opcode: int, stack: "list[bool | None]") -> None:
    truth = stack.pop()
    if opcode == _NOT:
        stack.append(None if truth is None else not truth)
    elif opcode in (_AND, _OR):
        other, decision = stack.pop(), opcode == _OR
        if truth is decision or other is decision:
            stack.append(decision)
        else:
            stack.append(None if truth is None or other is None else not decision)
    else:
        stack.append(truth is {_IS_TRUE: True, _IS_FALSE: False, _IS_UNKNOWN: None}[opcode])


def _verify(program: bytes) -> None:
    position, depth = 1, 0
    while position < len(program):
        opcode = program[position]
        if opcode not in _TAKES and opcode not in _OPERANDS:
            raise ValueError("opcode 0x%02x is not known" % opcode)
        depth -= _TAKES.get(opcode, 0)
        _, position = _read_operands(program, position, None, None)
        if depth < 0 or depth == _STACK_MAX:
            raise ValueError("byte %d: a stack of %d values" % (position, depth))
        depth += 1
    if depth != 1:
        raise ValueError("a program that leaves %d values" % depth)


def _read_operands(
    program: bytes, position: int, value: "Operand", unit: "str | None"
) -> "tuple[list[Operand], int]":
    """Return the operands of the instruction at a position, for a reading, and the next position.

    Decoded, a program would take fifty times its memory.
    """
    operands = []
    count = _OPERANDS.get(program[position], 0)
    position += 1
    for _ in range(count):
        tag = _take(program, position, 1)[0]
        position += 1
        if tag == _VALUE:
            operands.append(value)
        elif tag == _UNIT:
            operands.append(unit)
        elif tag in _CONSTANTS:
            operands.append(_CONSTANTS[tag])
        else:
            operand, position = _read_constant(program, position, tag)
            operands.append(operand)
    return operands, position


def _read_constant(program: bytes, position: int, tag: int) -> "tuple[Operand, int]":
    if tag == _STRING:
        end = position + 1 + _take(program, position, 1)[0]
        try:
            return _take(program, position + 1, end - position - 1).decode(), end
        except UnicodeError:
            raise ValueError("byte %d: text that is not UTF-8" % position)  # noqa: B904 - no `from` there
    data = _take(program, position, 8)
    if tag == _REAL:
        return reals.from_binary64(data), position + 8
    if tag != _INTEGER:
        raise ValueError("operand 0x%02x is not known" % tag)
    bits = int.from_bytes(data, "little")
    return bits - (1 << 64) if bits >> 63 else bits, position + 8


def _take(program: bytes, start: int, size: int) -> bytes:
    if start + size > len(program):
        raise ValueError("the program ends at byte %d" % len(program))
    return program[start : start + size]
