"""Tokens to a tree: the grammar's `primary`, which is what operators work on (where-language 3)."""

from collections.abc import Callable

from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter
from gateway.where.language.conversions import Number, read_number
from gateway.where.language.errors import WhereError
from gateway.where.language.expression import (
    Call,
    Cast,
    CastType,
    Expression,
    Literal,
    SearchedCase,
    SimpleCase,
    Stateful,
    TopicMatches,
)
from gateway.where.language.field_parser import read_field
from gateway.where.language.functions import FUNCTIONS, STATEFUL_FUNCTIONS, TYPE_NAMES
from gateway.where.language.lexer import Token, TokenKind, ascii_upper
from gateway.where.language.token_cursor import TokenCursor

ExpressionParser = Callable[[TokenCursor], Expression]
"""Reads the grammar's `expr`, for what stands between parentheses or within CASE."""

_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}


def operand(cursor: TokenCursor, expression: ExpressionParser) -> Expression:
    """Read a literal, a group, CASE, CAST, a call or a field."""
    kind = cursor.current.kind
    if kind is TokenKind.NUMBER:
        return Literal(number(cursor))
    if kind is TokenKind.STRING:
        return Literal(cursor.advance().value)
    if kind is TokenKind.KEYWORD:
        return _keyword(cursor, expression)
    if cursor.at_operator("("):
        return _group(cursor, expression)
    if cursor.at_call():
        return _call(cursor, expression)
    return read_field(cursor)


def number(cursor: TokenCursor, sign: str = "") -> Number:
    """Take a number literal and give its value, with the sign that is folded into it."""
    token = cursor.advance()
    value = read_number(sign + token.text)
    if value is None:
        raise WhereError(token.position, "syntax", "this number is outside the range of REAL")
    return value


def _keyword(cursor: TokenCursor, expression: ExpressionParser) -> Expression:
    if cursor.at_keyword(*_CONSTANTS):
        return Literal(_CONSTANTS[cursor.advance().value])
    if cursor.at_keyword("CASE"):
        return _case(cursor, expression)
    if cursor.take_keyword("CAST"):
        return _cast(cursor, expression)
    raise cursor.failure("an operand")


def _group(cursor: TokenCursor, expression: ExpressionParser) -> Expression:
    cursor.open()
    inner = expression(cursor)
    cursor.close_parenthesis("an operator or ')'")
    return inner


def _case(cursor: TokenCursor, expression: ExpressionParser) -> Expression:
    cursor.open()
    subject = () if cursor.at_keyword("WHEN") else (expression(cursor),)
    operands = [*subject]
    cursor.expect_keyword("WHEN")
    operands += _branch(cursor, expression)
    while cursor.take_keyword("WHEN"):
        operands += _branch(cursor, expression)
    operands.append(expression(cursor) if cursor.take_keyword("ELSE") else Literal(None))
    cursor.expect_keyword("END")
    cursor.close()
    kind = SimpleCase if subject else SearchedCase
    return kind(operands=tuple(operands))


def _branch(cursor: TokenCursor, expression: ExpressionParser) -> tuple[Expression, Expression]:
    condition = expression(cursor)
    cursor.expect_keyword("THEN")
    return condition, expression(cursor)


def _cast(cursor: TokenCursor, expression: ExpressionParser) -> Cast:
    cursor.open_parenthesis()
    inner = expression(cursor)
    cursor.expect_keyword("AS")
    to = _cast_type(cursor)
    cursor.close_parenthesis()
    return Cast(to, operands=(inner,))


def _cast_type(cursor: TokenCursor) -> CastType:
    token = cursor.current
    name = ascii_upper(token.text)
    if token.kind is not TokenKind.NAME or name not in TYPE_NAMES:
        raise cursor.failure("INTEGER, REAL, STRING or BOOLEAN")
    cursor.advance()
    return TYPE_NAMES[name]


def _call(cursor: TokenCursor, expression: ExpressionParser) -> Expression:
    token = cursor.advance()
    name = ascii_upper(token.text)
    if name == "TOPIC_MATCHES":
        return _topic_matches(cursor)
    if name in STATEFUL_FUNCTIONS:
        return _stateful(cursor, expression, token, name)
    if name not in FUNCTIONS:
        raise WhereError(token.position, "syntax", f"there is no function {token.shown()}")
    cursor.open_parenthesis()
    arguments = _arguments(cursor, expression)
    function = FUNCTIONS[name]
    if not function.takes(len(arguments)):
        raise _wrong_count(token, function.arity, arguments)
    return Call(name, operands=tuple(arguments))


def _stateful(
    cursor: TokenCursor, expression: ExpressionParser, token: Token, name: str
) -> Stateful:
    """Read the arguments of a function that remembers; none of them may remember itself."""
    if not cursor.stateful:
        message = f"{name} needs the memory of an uplink rule and is not available here"
        raise WhereError(token.position, "syntax", message)
    if cursor.remembering is not None:
        outer = cursor.remembering
        message = f"{outer.text} cannot contain {token.text}, which remembers, too"
        raise WhereError(outer.position, "syntax", message)
    cursor.remembering = token
    cursor.open_parenthesis()
    arguments = _arguments(cursor, expression)
    cursor.remembering = None
    count = STATEFUL_FUNCTIONS[name]
    if len(arguments) != count:
        raise _wrong_count(token, "1 argument" if count == 1 else f"{count} arguments", arguments)
    return Stateful(name, operands=tuple(arguments))


def _wrong_count(token: Token, arity: str, arguments: list[Expression]) -> WhereError:
    message = f"{token.text} takes {arity}, not {len(arguments)}"
    return WhereError(token.position, "syntax", message)


def _arguments(cursor: TokenCursor, expression: ExpressionParser) -> list[Expression]:
    arguments: list[Expression] = []
    if not cursor.at_operator(")"):
        arguments.append(expression(cursor))
        while cursor.take_operator(","):
            arguments.append(expression(cursor))
    cursor.close_parenthesis("an operator, ',' or ')'")
    return arguments


def _topic_matches(cursor: TokenCursor) -> TopicMatches:
    cursor.open_parenthesis()
    token = cursor.expect_string("a topic filter between single quotes")
    try:
        check_topic_filter(token.value)
    except MqttError as error:
        raise WhereError(token.position, "syntax", error.reason) from error
    if token.value.startswith(SHARED_PREFIX):
        message = "TOPIC_MATCHES takes no shared subscription's topic filter"
        raise WhereError(token.position, "syntax", message)
    cursor.close_parenthesis()
    return TopicMatches(token.value)
