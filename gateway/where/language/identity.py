"""Expressions that may not ask who published a message (where-language 12.6)."""

from dataclasses import replace
from typing import Final

from gateway.where.language.expression import Expression, Literal, SystemField

IDENTITY: Final = ("clientid", "username")


def without_identity(expression: Expression) -> Expression:
    """Return the tree with NULL in place of `$clientid` and `$username`."""
    if isinstance(expression, SystemField) and expression.name in IDENTITY:
        return Literal(None)
    if not expression.operands:
        return expression
    return replace(expression, operands=tuple(map(without_identity, expression.operands)))
