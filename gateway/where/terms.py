"""The comparisons of an expression by which its subscriptions can be indexed."""

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
"""The most nodes of an operand that an index computes for each message."""

_KINDS: Final = {"=": 0, "BETWEEN": 1}
_ONE_BOUND: Final = 2
"""Equalities distinguish messages better than two bounds, two bounds better than one."""


@dataclass(frozen=True, slots=True)
class Term:
    """`operand operator constant`, or `operand BETWEEN constant AND high`.

    `constant` is a number, or in an equality a text. A term is `whole` if it is the entire
    expression. `key` is the same for the same operand in any expression; `nodes` is its size.
    """

    operand: Expression
    operator: str
    constant: Any
    high: Number = 0
    whole: bool = False
    key: Hashable = None
    nodes: int = 0

    def reader(self) -> Reader:
        """Return a function that computes the operand's value for a message."""
        return SHARING.value(self.operand)


def terms(expression: Expression) -> list[Term]:
    """Return the terms that must be TRUE for a folded expression, if an index can compute them.

    The best is first. Of the same kind, the operand with the least cost comes first: fields outside
    the JSON payload, then those in it, then functions of fields.
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
    """Return a part of a conjunction as a term, None if it is none.

    An operand whose cost depends on the message is excluded: nobody is charged for an index.
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
    return Term(operand, operator, constant, high, whole, canonical_key(nodes), len(nodes))


def _number(expression: Expression) -> Number | None:
    """Return the number that the expression is, None if it is none."""
    if isinstance(expression, Literal) and isinstance(expression.value, int | float):
        return None if isinstance(expression.value, bool) else expression.value
    return None


def _distinct(expression: Expression) -> str | Number | None:
    """Return the number or text that the expression is.

    None for a BOOLEAN and for a text that reads as one: they have too few values to distinguish
    messages, and a rule of their own (where-language 5).
    """
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value if to_boolean(expression.value) is None else None
    return _number(expression)
