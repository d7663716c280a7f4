"""Rewrites trees: folds constants, hides identity (where-language 7, 9 and 12.6)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gateway.where.language.conversions import Value, to_boolean
from gateway.where.language.expression import (
    And,
    Arithmetic,
    Call,
    Cast,
    Comparison,
    Expression,
    Like,
    Literal,
    Not,
    Or,
    SearchedCase,
    Sign,
    SimpleCase,
    Stateful,
    SystemField,
)
from gateway.where.language.functions import FUNCTIONS

IDENTITY: Final = ("clientid", "username")


def without_identity(expression: Expression) -> Expression:
    """Return the tree with NULL in place of `$clientid` and `$username`."""
    if isinstance(expression, SystemField) and expression.name in IDENTITY:
        return Literal(None)
    if not expression.operands:
        return expression
    return replace(expression, operands=tuple(map(without_identity, expression.operands)))


_NULL_WITH_A_NULL: Final = (Comparison, Like, Arithmetic, Sign, Cast)


def fold(expression: Expression, evaluate: Callable[[Expression], Value]) -> Expression:
    """Return a tree of the same meaning in which constant parts are literals.

    `evaluate` returns the value of an expression whose operands are all literals.
    """
    if not expression.operands:
        return expression
    operands: list[Expression] = []
    constants: list[Value] = []
    for operand in expression.operands:
        folded = fold(operand, evaluate) if operand.operands else operand
        operands.append(folded)
        if isinstance(folded, Literal):
            constants.append(folded.value)
    folded = replace(expression, operands=tuple(operands))
    # a function with a memory may have another value for the next message
    if len(constants) == len(operands) and not isinstance(folded, Stateful):
        return Literal(evaluate(folded))
    if None in constants and _is_null_with_a_null(folded):
        return Literal(None)
    return folded


def _is_null_with_a_null(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return FUNCTIONS[expression.function].strict
    return isinstance(expression, _NULL_WITH_A_NULL)


def can_be(expression: Expression, *, truth: bool) -> bool:
    """Return whether the TO_BOOLEAN of a folded expression can be `truth`; True if unknown."""
    if isinstance(expression, Literal):
        return to_boolean(expression.value) is truth
    if isinstance(expression, Not):
        return can_be(expression.operands[0], truth=not truth)
    if isinstance(expression, And | Or):
        needed = all if isinstance(expression, And) is truth else any
        return needed(can_be(operand, truth=truth) for operand in expression.operands)
    results = _results(expression)
    return not results or any(can_be(result, truth=truth) for result in results)


def _results(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands one of which is the value; none if it is something else."""
    if isinstance(expression, SearchedCase):
        return (*expression.operands[1::2], expression.operands[-1])
    if isinstance(expression, SimpleCase):
        return (*expression.operands[2::2], expression.operands[-1])
    if isinstance(expression, Call) and expression.function == "COALESCE":
        return expression.operands
    return ()
