"""The tree of a parsed expression.

Every node has its parts in `operands`, in the order of the text, so that folding and checking walk
the tree without knowing its nodes. Nodes are compared by identity: Python treats 1, 1.0 and True as
equal, the language does not. Nobody changes a node; a frozen class takes 6 KB more.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from enum import Enum

from gateway.where.language.conversions import Value


@dataclass(slots=True, eq=False)
class Expression:
    """What every node has."""

    operands: tuple["Expression", ...] = field(default=(), kw_only=True)


@dataclass(slots=True, eq=False)
class Literal(Expression):
    """A value in the text, or one computed by folding."""

    value: Value


@dataclass(slots=True, eq=False)
class SystemField(Expression):
    """A field of where-language 6.1 by its name in small letters without `$`."""

    name: str


@dataclass(slots=True, eq=False)
class TopicLevel(Expression):
    """`topic[index]`."""

    index: int


@dataclass(slots=True, eq=False)
class UserProperty(Expression):
    """`$user.key`."""

    key: str


@dataclass(slots=True, eq=False)
class PayloadPath(Expression):
    """`payload.a[0]`: at least one step, a member's name or an index."""

    steps: tuple[str | int, ...]


@dataclass(slots=True, eq=False)
class BareName(Expression):
    """A user property or else a top-level payload member (where-language 6.2)."""

    name: str


@dataclass(slots=True, eq=False)
class Not(Expression):
    """NOT of one operand; `x NOT IN (...)`, `IS NOT` and similar are a Not around the test."""


@dataclass(slots=True, eq=False)
class And(Expression):
    """AND of two or more operands."""


@dataclass(slots=True, eq=False)
class Or(Expression):
    """OR of two or more operands."""


@dataclass(slots=True, eq=False)
class Comparison(Expression):
    """`left operator right`; the operator is one of `= != < <= > >=`."""

    operator: str


@dataclass(slots=True, eq=False)
class IsNull(Expression):
    """`x IS NULL`."""


@dataclass(slots=True, eq=False)
class IsTruth(Expression):
    """`x IS TRUE` or `x IS FALSE`."""

    truth: bool


@dataclass(slots=True, eq=False)
class In(Expression):
    """`x IN (a, ...)`; the operands are x and then the elements."""


@dataclass(slots=True, eq=False)
class Between(Expression):
    """`x BETWEEN low AND high`; the operands in this order."""


class Wildcard(Enum):
    """Special elements of a LIKE pattern."""

    ONE = "_"
    SEQUENCE = "%"


Pattern = tuple[str | Wildcard, ...]
"""A LIKE pattern with its escapes resolved: single code points and wildcards."""


@dataclass(slots=True, eq=False)
class Like(Expression):
    """`x LIKE pattern`."""

    pattern: Pattern


@dataclass(slots=True, eq=False)
class Arithmetic(Expression):
    """`a + b - c` or `a * b / c % d`, from left to right; one operator less than operands."""

    operators: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Sign(Expression):
    """Unary `+` or `-`."""

    sign: str


@dataclass(slots=True, eq=False)
class SearchedCase(Expression):
    """`CASE WHEN condition THEN result ... END`.

    The operands are condition and result of each branch in turn and the result of ELSE, which is a
    NULL literal if the text has none.
    """


@dataclass(slots=True, eq=False)
class SimpleCase(Expression):
    """`CASE subject WHEN value THEN result ... END`; the subject, then as in SearchedCase."""


class CastType(Enum):
    """The types that CAST converts to."""

    INTEGER = "INTEGER"
    REAL = "REAL"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"


@dataclass(slots=True, eq=False)
class Cast(Expression):
    """`CAST(x AS type)`."""

    to: CastType


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A call of a function of where-language 8 by its name in capitals."""

    function: str


@dataclass(slots=True, eq=False)
class Stateful(Expression):
    """A call of a function with memory, by its name in capitals (where-language 13)."""

    function: str


@dataclass(slots=True, eq=False)
class TopicMatches(Expression):
    """`TOPIC_MATCHES('topic filter')`."""

    topic_filter: str


def conjuncts(expression: Expression) -> list[Expression]:
    """Return the operands of a top-level AND; otherwise the expression itself."""
    if not isinstance(expression, And):
        return [expression]
    return [part for operand in expression.operands for part in conjuncts(operand)]


def conjunction(operands: list[Expression]) -> Expression | None:
    """Return the AND of the operands, None without any."""
    if len(operands) < 2:
        return operands[0] if operands else None
    return And(operands=tuple(operands))


def walk(expression: Expression) -> list[Expression]:
    """Return all nodes of the tree, the expression itself first; a deep tree costs no stack."""
    nodes, waiting = [], [expression]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting.extend(node.operands)
    return nodes


def canonical_key(nodes: list[Expression]) -> Hashable:
    """Return a key that is equal for two trees exactly if they have the same meaning by form.

    `nodes` are those of the tree from `walk`. Constants count with their type: Python treats 1, 1.0
    and True as equal.
    """
    key: list[Hashable] = []
    for node in nodes:
        key.append((type(node), len(node.operands)))
        for each in fields(node):
            if each.name != "operands":
                value = getattr(node, each.name)
                key.append((type(value), value))
    return tuple(key)
