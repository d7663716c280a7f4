"""Tokens to a tree: the grammar from `where` down to `unary` (where-language 3).

Each function reads one rule of the grammar. They recurse only through what opens a level of
nesting, and those are bounded.
"""

from collections.abc import Callable
from typing import Final

from gateway.pieces import Pieces, complete
from gateway.where.language.comparison import ORDERS
from gateway.where.language.errors import WhereError
from gateway.where.language.expression import (
    And,
    Arithmetic,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Not,
    Or,
    Pattern,
    Sign,
)
from gateway.where.language.lexer import Token, TokenKind
from gateway.where.language.like import parse_pattern
from gateway.where.language.limits import EXPRESSION_BYTES, PATTERN_CODE_POINTS
from gateway.where.language.operand_parser import number, operand
from gateway.where.language.token_cursor import TokenCursor


def parse(text: str, *, stateful: bool = False) -> Expression:
    """Return the tree of a whole `$where` value; raise WhereError if it is not accepted.

    `stateful` allows the functions of an uplink rule (where-language 13).
    """
    return complete(parse_in_pieces(text, stateful=stateful))


def parse_in_pieces(text: str, *, stateful: bool = False) -> Pieces[Expression]:
    """Do the same in two pieces: the longest texts take some 3 ms in each."""
    size = len(text.encode(errors="surrogatepass"))
    if size > EXPRESSION_BYTES:
        message = f"the expression has {size} bytes, the limit is {EXPRESSION_BYTES}"
        raise WhereError(0, "limit", message)
    cursor = TokenCursor(text, stateful=stateful)
    yield
    cursor.take_keyword("WHERE")
    expression = _expression(cursor)
    if cursor.current.kind is not TokenKind.END:
        raise cursor.failure("an operator or the end of the expression")
    return expression


def _expression(cursor: TokenCursor) -> Expression:
    operands = [_and_expression(cursor)]
    while cursor.take_keyword("OR"):
        operands.append(_and_expression(cursor))
    return operands[0] if len(operands) == 1 else Or(operands=tuple(operands))


def _and_expression(cursor: TokenCursor) -> Expression:
    operands = [_not_expression(cursor)]
    while cursor.take_keyword("AND"):
        operands.append(_not_expression(cursor))
    return operands[0] if len(operands) == 1 else And(operands=tuple(operands))


def _not_expression(cursor: TokenCursor) -> Expression:
    if not cursor.at_keyword("NOT"):
        return _predicate(cursor)
    cursor.open()
    negated = Not(operands=(_not_expression(cursor),))
    cursor.close()
    return negated


def _predicate(cursor: TokenCursor) -> Expression:
    left = _sum(cursor)
    if cursor.at_operator(*ORDERS):
        order = cursor.advance().value
        return Comparison(order, operands=(left, _sum(cursor)))
    if cursor.take_keyword("IS"):
        return _is(cursor, left)
    negated = cursor.take_keyword("NOT")
    if cursor.at_keyword(*_NEGATABLE):
        test = _NEGATABLE[cursor.advance().value](cursor, left)
        return Not(operands=(test,)) if negated else test
    if negated:
        raise cursor.failure("IN, BETWEEN or LIKE")
    return left


def _is(cursor: TokenCursor, left: Expression) -> Expression:
    negated = cursor.take_keyword("NOT")
    if not cursor.at_keyword("NULL", "TRUE", "FALSE"):
        raise cursor.failure("NULL, TRUE or FALSE" if negated else "NULL, NOT, TRUE or FALSE")
    keyword = cursor.advance().value
    test: Expression
    if keyword == "NULL":
        test = IsNull(operands=(left,))
    else:
        test = IsTruth(keyword == "TRUE", operands=(left,))
    return Not(operands=(test,)) if negated else test


def _in(cursor: TokenCursor, left: Expression) -> In:
    cursor.open_parenthesis()
    operands = [left, _expression(cursor)]
    while cursor.take_operator(","):
        operands.append(_expression(cursor))
    cursor.close_parenthesis("an operator, ',' or ')'")
    return In(operands=tuple(operands))


def _between(cursor: TokenCursor, left: Expression) -> Between:
    low = _sum(cursor)
    cursor.expect_keyword("AND")
    return Between(operands=(left, low, _sum(cursor)))


def _like(cursor: TokenCursor, left: Expression) -> Like:
    pattern = cursor.expect_string("a pattern between single quotes")
    if len(pattern.value) > PATTERN_CODE_POINTS:
        message = f"a pattern has at most {PATTERN_CODE_POINTS} code points"
        raise WhereError(pattern.position, "limit", message)
    escape = _escape(cursor) if cursor.take_keyword("ESCAPE") else None
    return Like(_pattern(pattern, escape), operands=(left,))


def _escape(cursor: TokenCursor) -> str:
    escape = cursor.expect_string("the escape character between single quotes")
    if len(escape.value) != 1:
        message = f"ESCAPE takes exactly one character, not {len(escape.value)}"
        raise WhereError(escape.position, "syntax", message)
    return escape.value


def _pattern(token: Token, escape: str | None) -> Pattern:
    try:
        return parse_pattern(token.value, escape)
    except ValueError as error:
        raise WhereError(token.position, "syntax", str(error)) from error


_NEGATABLE: Final[dict[str, Callable[[TokenCursor, Expression], Expression]]] = {
    "IN": _in,
    "BETWEEN": _between,
    "LIKE": _like,
}
"""The tails that take a NOT before them."""


def _sum(cursor: TokenCursor) -> Expression:
    return _arithmetic(cursor, _product, ("+", "-"))


def _product(cursor: TokenCursor) -> Expression:
    return _arithmetic(cursor, _unary, ("*", "/", "%"))


def _arithmetic(
    cursor: TokenCursor, part: Callable[[TokenCursor], Expression], symbols: tuple[str, ...]
) -> Expression:
    operands = [part(cursor)]
    operators: list[str] = []
    while cursor.at_operator(*symbols):
        operators.append(cursor.advance().value)
        operands.append(part(cursor))
    if not operators:
        return operands[0]
    return Arithmetic(tuple(operators), operands=tuple(operands))


def _unary(cursor: TokenCursor) -> Expression:
    if not cursor.at_operator("+", "-"):
        return operand(cursor, _expression)
    sign = cursor.open().value
    signed: Expression
    if sign == "-" and cursor.current.kind is TokenKind.NUMBER:
        signed = Literal(number(cursor, sign))
    else:
        signed = Sign(sign, operands=(_unary(cursor),))
    cursor.close()
    return signed
