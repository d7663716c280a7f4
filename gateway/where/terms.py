"""What an index can say of an expression: comparisons with constants (where-language 14.7)."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from gateway.where.compile import SHARING
from gateway.where.evaluation.closures import Reader
from gateway.where.language.conversions import MIRRORED, Number, to_boolean
from gateway.where.language.expression import (
    BareName,
    Between,
    Comparison,
    Expression,
    Literal,
    PayloadPath,
    canonical_key,
    conjuncts,
    walk,
)
from gateway.where.language.work import adds_up

_IN_JSON: Final = (BareName, PayloadPath)

INDEXED_NODES: Final = 12
"""Most nodes of an operand that an index works out for each message."""

_KINDS: Final = {"=": 0, "BETWEEN": 1}
_ONE_BOUND: Final = 2
"""Equalities tell messages apart better than two bounds, two bounds better than one."""


@dataclass(frozen=True, slots=True)
class Term:
    """`operand operator constant`, or `operand BETWEEN constant AND high`.

    `constant` is a number, or in an equality a text. A term is `whole` if its expression is nothing
    else. `key` is the same for the same operand in any expression; it has so many `nodes`.
    """

    operand: Expression
    operator: str
    constant: Any
    high: Number = 0
    whole: bool = False
    key: Hashable = None
    nodes: int = 0

    def reader(self) -> Reader:
        """Return what gives the operand's value for a message."""
        return SHARING.value(self.operand)


def terms(expression: Expression) -> list[Term]:
    """Return the terms that a folded expression is not TRUE without, and an index can work out.

    The best comes first. Of the same kind that is the one whose operand costs least: fields outside
    the JSON payload, then those in it, then what is worked out of fields.
    """
    parts = conjuncts(expression)
    found = []
    for part in parts:
        term = _term(part, whole=len(parts) == 1)
        if term is not None:
            found.append(term)
    return sorted(found, key=_rank)


def _rank(term: Term) -> tuple[int, int]:
    operand = term.operand
    cost = 2 if operand.operands else int(isinstance(operand, _IN_JSON))
    return _KINDS.get(term.operator, _ONE_BOUND), cost


def _term(part: Expression, *, whole: bool) -> Term | None:
    """Return the term that a part of a conjunction is, None if it is none.

    An operand that may cost more for some messages is none: nobody is charged for an index.
    """
    high: Number | None = 0
    if isinstance(part, Comparison) and part.operator != "!=":
        operand, other = part.operands
        operator = part.operator
        if isinstance(operand, Literal):
            operand, other, operator = other, operand, MIRRORED[operator]
        constant = _number(other) if operator != "=" else _distinct(other)
    elif isinstance(part, Between):
        operand, operator = part.operands[0], "BETWEEN"
        constant, high = map(_number, part.operands[1:])
    else:
        return None
    if constant is None or high is None:
        return None
    nodes = walk(operand)
    if len(nodes) > INDEXED_NODES or adds_up(nodes):
        return None
    return Term(operand, operator, constant, high, whole, canonical_key(operand), len(nodes))


def _number(expression: Expression) -> Number | None:
    """Return the number that the expression is."""
    if isinstance(expression, Literal) and isinstance(expression.value, int | float):
        return None if isinstance(expression.value, bool) else expression.value
    return None


def _distinct(expression: Expression) -> str | Number | None:
    """Return the number or text that the expression is.

    None for a BOOLEAN and for a text that reads as one: too few values to tell messages apart, and
    a rule of their own (where-language 5).
    """
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value if to_boolean(expression.value) is None else None
    return _number(expression)
