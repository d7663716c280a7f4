"""Valid expressions that are probably mistakes: each causes a warning."""

from collections.abc import Iterator
from typing import Final

from gateway.where.language.expression import (
    And,
    BareName,
    Between,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    SystemField,
    Wildcard,
    canonical_key,
    conjuncts,
    walk,
)
from gateway.where.language.lexer import TokenKind, tokenize
from gateway.where.language.spelling import spell

_SWAPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
"""The mirrored operator of each comparison."""


def likely_mistakes(text: str, expression: Expression) -> list[str]:
    """Return a sentence for each likely mistake in an expression.

    `expression` is the compiled `text`, with constant parts folded.
    """
    quoted = {
        token.value
        for token in tokenize(text)
        if token.kind is TokenKind.QUOTED_NAME and token.text.startswith('"')
    }
    found: dict[str, None] = {}  # each once, in order
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.operands))
        for mistake in _mistakes_of(node, quoted):
            found[mistake] = None
    return list(found)


def _mistakes_of(node: Expression, quoted: set[str]) -> Iterator[str]:
    if isinstance(node, Comparison | In):
        yield from _names_for_texts(node, quoted)
        yield from _wildcards_in_topics(node)
    elif isinstance(node, Like):
        yield from _wildcards_of_shells(node)
    elif isinstance(node, Between):
        yield from _empty_between(node)
    elif isinstance(node, And):
        yield from _empty_ranges(node)


def _names_for_texts(node: Comparison | In, quoted: set[str]) -> Iterator[str]:
    """Warn of `payload.state = "ON"`: a double-quoted name in place of a value."""
    first, *others = node.operands
    if isinstance(first, Literal):
        return
    if not any(isinstance(other, Literal | BareName) for other in others):
        others = [first]
    for other in others:
        if isinstance(other, BareName) and other.name in quoted:
            text = spell(Literal(other.name))
            yield f'"{other.name}" is a name, and NULL where there is none of it: a text is {text}'


def _wildcards_in_topics(node: Comparison | In) -> Iterator[str]:
    """Warn of `topic = 'a/+/b'`."""
    if not any(isinstance(each, SystemField) and each.name == "topic" for each in node.operands):
        return
    for each in node.operands:
        text = each.value if isinstance(each, Literal) else None
        if isinstance(text, str) and {"+", "#"} & set(text.split("/")):
            shown = spell(each)
            yield f"no topic is {shown}, a topic filter: use TOPIC_MATCHES({shown})"


def _wildcards_of_shells(node: Like) -> Iterator[str]:
    """Warn of `LIKE '*x*'`."""
    if Wildcard.SEQUENCE in node.pattern or Wildcard.ONE in node.pattern:
        return
    if "*" in node.pattern or "?" in node.pattern:
        yield f"{spell(node)} knows no * and ?: % stands for any characters, _ for one"


def _empty_between(node: Between) -> Iterator[str]:
    _, low, high = (_number(each) for each in node.operands)
    if low is not None and high is not None and low > high:
        yield f"{spell(node)} is never TRUE: the lower bound comes first"


def _empty_ranges(node: And) -> Iterator[str]:
    """Warn of `x > 10 AND x < 5`."""
    bounds: dict[object, list[tuple[str, float, Comparison]]] = {}
    for part in conjuncts(node):
        bound = _bound(part) if isinstance(part, Comparison) else None
        if bound is None:
            continue
        subject, operator, number, comparison = bound
        for other_operator, other_number, other in bounds.setdefault(subject, []):
            if _excludes(operator, number, other_operator, other_number):
                yield f"{spell(other)} and {spell(comparison)} are never TRUE together"
        bounds[subject].append((operator, number, comparison))


def _bound(node: Comparison) -> tuple[object, str, float, Comparison] | None:
    """Return (operand, operator, number, node) of a bound; None if it is none."""
    left, right = node.operands
    operator, number = node.operator, _number(right)
    if number is None:
        left, operator, number = right, _SWAPPED.get(operator, ""), _number(left)
    if number is None or operator not in _SWAPPED:
        return None
    return canonical_key(walk(left)), operator, number, node


def _excludes(operator: str, number: float, other_operator: str, other_number: float) -> bool:
    """Return whether no number can be both."""
    if "<" in operator or (operator == "=" and ">" in other_operator):
        operator, number, other_operator, other_number = (
            other_operator,
            other_number,
            operator,
            number,
        )
    if operator == "=" == other_operator:
        return number != other_number
    if operator[0] == other_operator[0]:
        return False
    inclusive = "=" in operator and "=" in other_operator
    return number > other_number or (number == other_number and not inclusive)


def _number(node: Expression) -> float | None:
    """Return the number that a literal is."""
    value = node.value if isinstance(node, Literal) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
