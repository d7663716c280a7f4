"""The cost of an expression's parts for a message, so that it can be bounded.

Work is counted, not measured, so that an expression always costs the same for a message. A unit is
about a nanosecond of plain Python on a PC, in the worst case that was found.
"""

from collections.abc import Callable, Iterable
from typing import Final

from gateway.where.language.conversions import Number, Value
from gateway.where.language.expression import (
    Between,
    Call,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Pattern,
    SimpleCase,
    Wildcard,
)

NODE: Final = 200
"""Work of a node of the tree, without that of a text's length."""

_NOT_ASCII: Final = 8
"""Work of a code point of a text that UPPER and LOWER encode."""

_COPIED: Final = 2
"""Work of a code point that is copied: it may take four bytes."""

_STEPWISE: Final = 100
"""Work of a code point that a segment of LIKE with `_` examines in Python."""

_SHORT_TEXT, _LONG_TEXT = 2_500, 30_000
"""Code points between which `str.find` uses another algorithm than below or above."""


def letters(text: str) -> int:
    """Return the work of UPPER and LOWER."""
    return len(text) if text.isascii() else _NOT_ASCII * len(text)


def copied(*texts: str) -> int:
    """Return the work of TRIM and CONCAT."""
    return _COPIED * sum(map(len, texts))


def cut(text: str, start: Number, length: Number | None = None) -> int:
    """Return the work of SUBSTR."""
    del start
    size = len(text)
    return _COPIED * size if length is None else _COPIED * int(max(0, min(size, length)))


def compared(left: Value, right: Value) -> int:
    """Return the work of a comparison, which is 0 unless both values are texts."""
    if type(left) is str and type(right) is str:
        return min(len(left), len(right))
    return 0


def searched(text: str, part: str) -> int:
    """Return the work of INSTR."""
    return len(text) * _search(len(text), len(part))


def _search(size: int, part: int) -> int:
    """Return the cost of each code point that `str.find` examines, in the worst case.

    The worst text has the beginning of the searched part everywhere.
    """
    if size < _SHORT_TEXT:
        return min(part, 300)
    return min(part, 50 if size < _LONG_TEXT else 8)


def liked(pattern: Pattern) -> Callable[[str], int] | None:
    """Return a function for the work of LIKE for a text; None if only its ends are examined."""
    sequences = [place for place, each in enumerate(pattern) if each is Wildcard.SEQUENCE]
    between = pattern[sequences[0] : sequences[-1]] if sequences else ()
    if Wildcard.ONE in between:
        return lambda text: _STEPWISE * len(text)
    longest = run = 0
    for each in between:
        run = 0 if each is Wildcard.SEQUENCE else run + 1
        longest = max(longest, run)
    return (lambda text: len(text) * _search(len(text), longest)) if longest else None


def adds_up(nodes: Iterable[Expression]) -> bool:
    """Return whether the length of a text may add to the work of an expression with these nodes."""
    for node in nodes:
        if isinstance(node, Call) and node.function in _CALLS:
            return True
        if isinstance(node, Like) and liked(node.pattern) is not None:
            return True
        if isinstance(node, Comparison | In | Between | SimpleCase) and _compares_texts(node):
            return True
    return False


def _compares_texts(node: Expression) -> bool:
    """Return whether values are compared neither of which is in the expression."""
    first, *others = node.operands
    if isinstance(node, SimpleCase):
        others = others[:-1:2]
    return type(first) is not Literal and {*map(type, others)} != {Literal}


_CALLS: Final = frozenset({"UPPER", "LOWER", "TRIM", "SUBSTR", "INSTR", "CONCAT", "NULLIF"})
"""Functions whose work depends on their texts."""
