"""What an index can say of an expression: comparisons with constants (where-language 14.7)."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from gateway.where.compile import SHARING
from gateway.where.evaluation.closures import Reader
from gateway.where.language.comparison import MIRRORED
from gateway.where.language.conversions import Number, to_boolean
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
    else.
    """

    operand: Expression
    operator: str
    constant: Any
    high: Number = 0
    whole: bool = False

    @property
    def operand_key(self) -> Hashable:
        """What is the same for the same operand in any expression."""
        return canonical_key(self.operand)

    @property
    def costs_little(self) -> bool:
        """Whether the operand costs as little for any message: nobody is charged for an index."""
        nodes = walk(self.operand)
        return len(nodes) <= INDEXED_NODES and not adds_up(nodes)

    @property
    def nodes(self) -> int:
        """How many nodes the operand has."""
        return len(walk(self.operand))

    def reader(self) -> Reader:
        """Return what gives the operand's value for a message."""
        return SHARING.value(self.operand)


def terms(expression: Expression) -> list[Term]:
    """Return the terms that a folded expression is not TRUE without, the best first.

    Of the same kind, those whose operand costs least come first: fields outside the JSON payload,
    then those in it, then what is worked out of fields.
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
    """Return the term that a part of a conjunction is, None if it is none."""
    if isinstance(part, Comparison) and part.operator != "!=":
        operand, other = part.operands
        operator = part.operator
        if isinstance(operand, Literal):
            operand, other, operator = other, operand, MIRRORED[operator]
        constant = _number(other) if operator != "=" else _distinct(other)
        return None if constant is None else Term(operand, operator, constant, whole=whole)
    if isinstance(part, Between):
        operand, *bounds = part.operands
        low, high = map(_number, bounds)
        if low is not None and high is not None:
            return Term(operand, "BETWEEN", low, high, whole=whole)
    return None


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
