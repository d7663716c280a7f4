"""Tokens to a tree: the grammar's `field` (where-language 3 and 6)."""

from typing import Final

from gateway.where.language.errors import WhereError
from gateway.where.language.expression import (
    BareName,
    Expression,
    PayloadPath,
    SystemField,
    TopicLevel,
    UserProperty,
)
from gateway.where.language.lexer import TokenKind, ascii_lower
from gateway.where.language.limits import ARRAY_INDEX
from gateway.where.language.token_cursor import TokenCursor

BARE_SYSTEM_FIELDS: Final = frozenset(
    {
        "topic",
        "qos",
        "retain",
        "clientid",
        "username",
        "payload",
        "content_type",
        "response_topic",
        "correlation_data",
    }
)
"""The nine that need no `$`; frozen (where-language 6.1)."""

SYSTEM_FIELDS: Final = BARE_SYSTEM_FIELDS | {
    "payload_size",
    "payload_format",
    "message_expiry",
    "received_at",
}

_KEY_TOKENS: Final = (TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.KEYWORD)
_INDEX_DIGITS: Final = len(str(ARRAY_INDEX))


def read_field(cursor: TokenCursor) -> Expression:
    """Read a system field, a payload path, a topic level, a user property or a bare name."""
    token = cursor.current
    if token.kind is TokenKind.SYSTEM_NAME:
        return _system_name(cursor)
    if token.kind is TokenKind.NAME and ascii_lower(token.text) in BARE_SYSTEM_FIELDS:
        return _system_field(cursor, ascii_lower(token.text))
    if token.kind in (TokenKind.NAME, TokenKind.QUOTED_NAME):
        return _bare_name(cursor)
    raise cursor.failure("an operand")


def _bare_name(cursor: TokenCursor) -> BareName:
    name = cursor.advance().value
    if cursor.at_operator(".", "["):
        message = "only payload, topic and $user lead to a path; a name with a dot needs quotes"
        raise WhereError(cursor.current.position, "syntax", message)
    return BareName(name)


def _system_name(cursor: TokenCursor) -> Expression:
    token = cursor.current
    name = ascii_lower(token.value)
    if name == "user":
        cursor.advance()
        cursor.expect_operator(".", "a dot and the name of a user property")
        return UserProperty(_key(cursor))
    if name not in SYSTEM_FIELDS:
        raise WhereError(token.position, "syntax", f"there is no field {token.shown()}")
    return _system_field(cursor, name)


def _system_field(cursor: TokenCursor, name: str) -> Expression:
    cursor.advance()
    if name == "payload":
        return _payload(cursor)
    if name == "topic" and cursor.take_operator("["):
        return TopicLevel(_index(cursor))
    return SystemField(name)


def _payload(cursor: TokenCursor) -> Expression:
    steps: list[str | int] = []
    while cursor.at_operator(".", "["):
        steps.append(_key(cursor) if cursor.advance().value == "." else _index(cursor))
    return PayloadPath(tuple(steps)) if steps else SystemField("payload")


def _key(cursor: TokenCursor) -> str:
    token = cursor.current
    if token.kind not in _KEY_TOKENS:
        raise cursor.failure("a name")
    cursor.advance()
    return token.text if token.kind is TokenKind.KEYWORD else token.value


def _index(cursor: TokenCursor) -> int:
    """Read what follows a `[`, with the `]`."""
    token = cursor.current
    if token.kind is not TokenKind.NUMBER:
        raise cursor.failure("an index, digits only")
    digits = token.text.lstrip("0") or "0"
    if not token.text.isdigit() or len(digits) > _INDEX_DIGITS or int(digits) > ARRAY_INDEX:
        message = f"an index is a whole number from 0 to {ARRAY_INDEX}"
        raise WhereError(token.position, "syntax", message)
    cursor.advance()
    cursor.expect_operator("]")
    return int(digits)
