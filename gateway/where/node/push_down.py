"""Finds the part of an expression that a node can decide itself before it sends a reading.

A reading arrives as a message with a known topic, with QoS 1, not retained and without properties.
Its payload is `{"value":…,"unit":…,"time":…}`, `unit` only if there is one
(docs/understand/serial-protocol.md). A node knows `payload.value`, `payload.unit` and the
time between two readings. It does not know `$received_at`, `payload.time`
(which the gateway fills in), `$clientid`, nor the payload as text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gateway.mqtt.message import Message
from gateway.where.compile import COMPILER, constant_value
from gateway.where.language.conversions import to_boolean, to_number
from gateway.where.language.expression import (
    And,
    BareName,
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
    SystemField,
    TopicLevel,
    TopicMatches,
    UserProperty,
    conjunction,
    conjuncts,
)
from gateway.where.language.folding import fold

VALUE: Final = ("value",)
UNIT: Final = ("unit",)
_TIME: Final = ("time",)

READING_QOS: Final = 1
"""QoS of the message that a reading becomes."""

TEXT_MAX: Final = 64
"""Bytes of a constant text that a node compares with; its own values and units have 32."""

_UNKNOWN: Final = ("clientid", "payload", "payload_size", "received_at")
_SEES_EVERY_MESSAGE: Final = ("PREV", "CHANGED")


@dataclass(frozen=True, slots=True)
class Split:
    """An expression as `node AND residual`, for the readings of one topic.

    `node` is None if the node must send everything, `residual` None if nothing is left for the
    gateway to decide.
    """

    node: Expression | None
    residual: Expression | None


def push_down(expression: Expression, topic: str) -> Split:
    """Split an expression for the readings that arrive on `topic`.

    `node AND residual` has the same result for each of them as `expression`. Of functions with
    memory, SENT, DEADBAND and EVERY depend on the whole result, so a node has their memory only if
    there is no residual. PREV and CHANGED need every message, which a gateway with filtering nodes
    does not receive: with one of them the node must send everything.
    """
    known = fold(_of_a_reading(expression, Message(topic, qos=READING_QOS)), constant_value)
    parts = [part for part in conjuncts(known) if not _is_true(part)]
    if any(each.function in _SEES_EVERY_MESSAGE for each in _stateful(known)):
        return Split(None, conjunction(parts))
    node = [part for part in parts if _is_condition(part)]
    if len(node) < len(parts):
        node = [part for part in node if not any(_stateful(part))]
    residual = [part for part in parts if part not in node]
    return Split(conjunction(node), conjunction(residual))


def _is_true(expression: Expression) -> bool:
    return isinstance(expression, Literal) and to_boolean(expression.value) is True


def _stateful(expression: Expression) -> Iterator[Stateful]:
    if isinstance(expression, Stateful):
        yield expression
    for operand in expression.operands:
        yield from _stateful(operand)


def _of_a_reading(expression: Expression, message: Message) -> Expression:
    """Replace what is known of every reading on the message's topic."""
    if isinstance(expression, BareName):
        expression = PayloadPath((expression.name,))
    if isinstance(expression, PayloadPath):
        return expression if expression.steps in (VALUE, UNIT, _TIME) else Literal(None)
    if isinstance(expression, TopicLevel | TopicMatches | UserProperty) or (
        isinstance(expression, SystemField) and expression.name not in _UNKNOWN
    ):
        return Literal(COMPILER.value(expression)(message))
    operands = tuple(_of_a_reading(operand, message) for operand in expression.operands)
    return replace(expression, operands=operands)


def _is_condition(expression: Expression) -> bool:
    operands = expression.operands
    if isinstance(expression, Not | And | Or):
        return all(map(_is_condition, operands))
    if isinstance(expression, IsNull | IsTruth):
        return _is_condition(operands[0])
    if isinstance(expression, Comparison | In | Between):
        return all(map(_is_operand, operands))
    if isinstance(expression, Stateful):
        return _node_remembers(expression)
    return _is_operand(expression)


def _is_operand(expression: Expression) -> bool:
    if isinstance(expression, Literal):
        value = expression.value
        return not isinstance(value, str) or len(value.encode()) <= TEXT_MAX
    return isinstance(expression, PayloadPath) and expression.steps in (VALUE, UNIT)


def _node_remembers(expression: Stateful) -> bool:
    *arguments, number = expression.operands
    if not isinstance(number, Literal) or to_number(number.value) is None:
        return False
    if expression.function == "EVERY":
        return True
    (argument,) = arguments or (None,)
    return isinstance(argument, PayloadPath) and argument.steps == VALUE
