"""About the memory that a compiled expression takes, for those who bound it."""

from typing import Final

from gateway.where.language.expression import Expression, Like

EXPRESSION: Final = 800
"""Bytes of an expression by itself, with its figures and its places in tables."""

NODE: Final = 500
"""Bytes of a node of the tree and of its closure."""

CHARACTER: Final = 30
"""Bytes for each character of the text: a name, a path and a topic filter are kept in parts."""

LIKE: Final = 1_200
PATTERN: Final = 150
"""Bytes of a LIKE, and of each element of its pattern, beside those of any node."""


def expression_bytes(text: str, expression: Expression) -> int:
    """Return about the most bytes that a compiled expression takes; plain texts take less."""
    size = EXPRESSION + CHARACTER * len(text)
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.operands)
        size += NODE
        if isinstance(node, Like):
            size += LIKE + PATTERN * len(node.pattern)
    return size
