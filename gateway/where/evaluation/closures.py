"""What a node of the tree is compiled to, and what it is given for that."""

from collections.abc import Callable
from typing import Any, Protocol

from gateway.mqtt.message import Message
from gateway.where.language.conversions import Value
from gateway.where.language.expression import Expression

Reader = Callable[[Message], Value]
"""Gives the value of an expression for a message; never raises."""

Condition = Callable[[Message], bool | None]
"""Gives the TO_BOOLEAN of an expression for a message; never raises."""


class Compiler(Protocol):
    """Compiles the operands of the node at hand."""

    def value(self, expression: Expression) -> Reader:
        """Return a closure that gives the value of `expression`."""

    def shares(self, expression: Expression) -> bool:
        """Say whether other expressions have this part, too: then its closure knows the value."""

    def truth(self, expression: Expression) -> Condition:
        """Return a closure that gives the TO_BOOLEAN of `expression`."""


Builder = Callable[[Any, Compiler], Callable[[Message], Any]]
"""Compiles one kind of node."""
