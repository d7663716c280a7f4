"""What must be equal for an expression to be TRUE (where-language 14.7)."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final, TypeGuard

from gateway.routing.where.closures import Reader
from gateway.routing.where.compile import COMPILER
from gateway.routing.where.conversions import Number, Value, to_boolean
from gateway.routing.where.expression import (
    And,
    BareName,
    Comparison,
    Expression,
    Literal,
    PayloadPath,
    SystemField,
    TopicLevel,
    UserProperty,
    canonical_key,
)

_FIELDS: Final = (SystemField, TopicLevel, UserProperty, BareName, PayloadPath)
_IN_JSON: Final = (BareName, PayloadPath)


@dataclass(frozen=True, slots=True)
class Equality:
    """`field = constant`; `field_key` is the same for the same field in any expression."""

    field: Expression
    field_key: Hashable
    constant: str | Number

    def reader(self) -> Reader:
        """Return what gives the field's value for a message."""
        return COMPILER.value(self.field)


def equalities(expression: Expression) -> list[Equality]:
    """Return the equalities without any of which a folded expression is not TRUE.

    Those whose field may be in the JSON payload come last. A BOOLEAN constant is left out, and
    so is a text that reads as one: too few values to tell messages apart, and a rule of their
    own (where-language 5).
    """
    found = [
        Equality(field, canonical_key(field), constant)
        for field, constant in _compared(expression)
        if _distinguishes(constant)
    ]
    return sorted(found, key=lambda equality: isinstance(equality.field, _IN_JSON))


def _compared(expression: Expression) -> Iterator[tuple[Expression, Value]]:
    """Yield field and constant of each `=` that is the expression or is joined to it by AND."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And):
            waiting.extend(reversed(node.operands))
        elif isinstance(node, Comparison) and node.operator == "=":
            left, right = node.operands
            if isinstance(left, Literal):
                left, right = right, left
            if isinstance(left, _FIELDS) and isinstance(right, Literal):
                yield left, right.value


def _distinguishes(constant: Value) -> TypeGuard[str | Number]:
    if isinstance(constant, str):
        return to_boolean(constant) is None
    return isinstance(constant, int | float) and not isinstance(constant, bool)
