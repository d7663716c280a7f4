"""Functions with memory, and what a rule remembers of each topic (where-language 13).

A slot is an index in the row that a rule stores for each topic. Equal arguments share one.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from gateway.mqtt.message import Message
from gateway.where.evaluation.closures import Compiler, Reader, compare_counted
from gateway.where.language.conversions import ORDERS, Value, compare, to_number
from gateway.where.language.expression import (
    Expression,
    Stateful,
    SystemField,
    canonical_key,
    walk,
)
from gateway.where.language.functions import OPERATIONS, absolute

RULE_TOPICS: Final = 100_000
"""Topics that a rule remembers; further ones are flagged (where-language 13)."""

RULE_CODE_POINTS: Final = 32 * 1024 * 1024
"""Code points of the topic names and texts that a rule remembers; beyond that is flagged, too.

The language has no such limit, but topic names and texts could fill a small board.
"""

CONTAINER: Final[list[Value]] = []
"""Represents every remembered JSON object or array: the language cannot distinguish them."""


class RuleMemory:
    """A row of remembered values for each Topic Name, within two bounds.

    A topic beyond RULE_TOPICS, or one whose texts do not fit into RULE_CODE_POINTS, is not
    remembered: its messages meet an empty memory. `overflows` counts the messages that could not be
    remembered (`state_overflow`).
    """

    __slots__ = ("_code_points", "_rows", "overflows")

    def __init__(self) -> None:
        self._rows: dict[str, Sequence[Value]] = {}
        self._code_points = 0
        self.overflows = 0

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, topic: str) -> Sequence[Value] | None:
        """Return the row of `topic`, None without one."""
        return self._rows.get(topic)

    def remember(self, topic: str, row: Sequence[Value]) -> bool:
        """Store `row`; return False if it does not fit, and forget `topic`."""
        free = RULE_CODE_POINTS - self._code_points
        known = self._rows.get(topic)
        if known is not None:
            free += _code_points(topic, known)
        elif len(self._rows) >= RULE_TOPICS:
            free = -1
        if _code_points(topic, row) > free:
            self.overflows += 1
            self.forget(topic)
            return False
        self._rows[topic] = row
        self._code_points = RULE_CODE_POINTS - free + _code_points(topic, row)
        return True

    def forget(self, topic: str) -> None:
        """Forget `topic`."""
        row = self._rows.pop(topic, None)
        if row is not None:
            self._code_points -= _code_points(topic, row)


def _code_points(topic: str, row: Sequence[Value]) -> int:
    return len(topic) + sum(len(value) for value in row if isinstance(value, str))


_MILLISECONDS: Final = 1000


class Slots:
    """What a rule must remember, and the present topic's row during an evaluation.

    `row` has a value for each slot; the caller sets it before an evaluation.
    """

    __slots__ = ("_indices", "_previous", "_sent", "row")

    def __init__(self) -> None:
        self.row: Sequence[Value] = ()
        self._indices: dict[tuple[str, Hashable], int] = {}
        self._previous: list[tuple[int, Reader]] = []
        self._sent: list[tuple[int, Reader]] = []

    def __len__(self) -> int:
        return len(self._indices)

    def build(self, expression: Stateful, compiler: Compiler) -> Reader:
        """Compile a call of a function with memory."""
        return _FUNCTIONS[expression.function](expression, compiler, self)

    def previous(self, argument: Expression, compiler: Compiler) -> int:
        """Return the slot of the last value of `argument` that was not NULL."""
        return self._slot(self._previous, "PREV", argument, compiler)

    def sent(self, argument: Expression, compiler: Compiler) -> int:
        """Return the slot of the value of `argument` that was forwarded last."""
        return self._slot(self._sent, "SENT", argument, compiler)

    @property
    def keys(self) -> Sequence[Hashable]:
        """The meaning of each slot; equal for slots of other rules with the same meaning."""
        return list(self._indices)

    def filled_from(self, keys: Sequence[Hashable], row: Sequence[Value]) -> Sequence[Value]:
        """Return a row for these slots, with the values of `row` whose `keys` are the same."""
        values = dict(zip(keys, row, strict=True))
        return [values.get(key) for key in self._indices]

    def after(self, message: Message, *, passed: bool) -> Sequence[Value]:
        """Return `row` as it is after `message`; `row` itself if nothing changes."""
        row = list(self.row)
        for slot, read in self._previous:
            value = _remembered(read(message))
            if value is not None:
                row[slot] = value
        if passed:
            for slot, read in self._sent:
                row[slot] = _remembered(read(message))
        return self.row if _same(row, self.row) else row

    def _slot(
        self, slots: list[tuple[int, Reader]], kind: str, argument: Expression, compiler: Compiler
    ) -> int:
        key = (kind, canonical_key(walk(argument)))
        slot = self._indices.get(key)
        if slot is None:
            slot = self._indices[key] = len(self._indices)
            slots.append((slot, compiler.value(argument)))
        return slot


def _remembered(value: Value) -> Value:
    return CONTAINER if isinstance(value, dict | list) else value


def _same(row: Sequence[Value], other: Sequence[Value]) -> bool:
    pairs = zip(row, other, strict=True)
    return all(type(one) is type(two) and one == two for one, two in pairs)


def _prev(expression: Stateful, compiler: Compiler, slots: Slots) -> Reader:
    slot = slots.previous(expression.operands[0], compiler)
    return lambda _: slots.row[slot]


def _sent(expression: Stateful, compiler: Compiler, slots: Slots) -> Reader:
    slot = slots.sent(expression.operands[0], compiler)
    return lambda _: slots.row[slot]


def _changed(expression: Stateful, compiler: Compiler, slots: Slots) -> Reader:
    (argument,) = expression.operands
    read, slot = compiler.value(argument), slots.previous(argument, compiler)
    equal = ORDERS["="]

    def evaluate(message: Message) -> bool:
        value = read(message)
        if value is None:
            return False
        return compare_counted(message, equal, value, slots.row[slot]) is not True

    return evaluate


def _deadband(expression: Stateful, compiler: Compiler, slots: Slots) -> Reader:
    argument, band = expression.operands
    read, read_band = compiler.value(argument), compiler.value(band)
    slot = slots.sent(argument, compiler)
    subtract = OPERATIONS["-"]

    def evaluate(message: Message) -> bool | None:
        value, width = to_number(read(message)), to_number(read_band(message))
        if value is None or width is None:
            return False
        last = to_number(slots.row[slot])
        if last is None:
            return True
        difference = subtract(value, last)
        distance = None if difference is None else absolute(difference)
        return None if distance is None else distance >= width

    return evaluate


def _every(expression: Stateful, compiler: Compiler, slots: Slots) -> Reader:
    time = SystemField("received_at")
    read, read_seconds = compiler.value(time), compiler.value(expression.operands[0])
    slot = slots.sent(time, compiler)
    subtract, multiply, at_least = OPERATIONS["-"], OPERATIONS["*"], ORDERS[">="]

    def evaluate(message: Message) -> bool | None:
        now, seconds = to_number(read(message)), to_number(read_seconds(message))
        if now is None or seconds is None:
            return None
        last = to_number(slots.row[slot])
        if last is None:
            return True
        return compare(at_least, subtract(now, last), multiply(seconds, _MILLISECONDS))

    return evaluate


_FUNCTIONS: Final[dict[str, Callable[[Stateful, Compiler, Slots], Reader]]] = {
    "PREV": _prev,
    "SENT": _sent,
    "CHANGED": _changed,
    "DEADBAND": _deadband,
    "EVERY": _every,
}
