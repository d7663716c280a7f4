"""Text to tokens (where-language 2).

What cannot be read becomes the last token and carries its error, so that the error is reported
when the parser reaches it and not before.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from unicodedata import category

from gateway.where.language.conversions import NUMBER_LITERAL
from gateway.where.language.errors import ErrorKind, WhereError
from gateway.where.language.limits import EXPRESSION_TOKENS

KEYWORDS: Final = frozenset(
    {
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "LIKE",
        "ESCAPE",
        "BETWEEN",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "CAST",
        "AS",
    }
)


_SHOWN_CODE_POINTS: Final = 40
"""Longest piece of the expression that an error message repeats."""


class TokenKind(Enum):
    """What a token is."""

    KEYWORD = auto()
    NAME = auto()
    QUOTED_NAME = auto()
    SYSTEM_NAME = auto()
    STRING = auto()
    NUMBER = auto()
    OPERATOR = auto()
    END = auto()
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token at its position; `text` is as spelled, `value` what it means.

    The value is a keyword's capitals, a quoted text without its quotes, a system name without
    `$`, an operator with `!=` for `<>`. `error` is set if and only if the kind is ERROR.
    """

    kind: TokenKind
    position: int
    text: str
    value: str
    error: WhereError | None = None

    def shown(self) -> str:
        """Return the token as an error message repeats it."""
        if self.kind is TokenKind.END:
            return "the end of the expression"
        rest = "..." if len(self.text) > _SHOWN_CODE_POINTS else ""
        return repr(self.text[:_SHOWN_CODE_POINTS]) + rest


_NOT_WHITE_SPACE: Final = re.compile(r"[^ \t\n\r]")
_NUMBER: Final = re.compile(NUMBER_LITERAL)
_WORD: Final = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]+")
_OPERATOR: Final = re.compile(r"<>|[!<>]=|[=<>+*/%(),.\[\]-]")
_COMMENT: Final = ("--", "/*")
# Possessive, so that a doubled quote is never taken apart to end an unterminated literal.
_QUOTED: Final = {
    "'": (TokenKind.STRING, re.compile(r"'[^']*+(?:''[^']*+)*+'")),
    '"': (TokenKind.QUOTED_NAME, re.compile(r'"[^"]*+(?:""[^"]*+)*+"')),
    "`": (TokenKind.QUOTED_NAME, re.compile(r"`[^`]*+(?:``[^`]*+)*+`")),
}


def tokenize(text: str) -> list[Token]:
    """Split `text` into tokens; the last one, and only it, is of kind END or ERROR."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    position = _skip_white_space(text, 0)
    count = 0
    while position < len(text):
        token = _token_at(text, position)
        count += 1
        if count > EXPRESSION_TOKENS and token.kind is not TokenKind.ERROR:
            message = f"an expression has at most {EXPRESSION_TOKENS} tokens"
            token = _error(text, position, message, "limit")
        yield token
        if token.kind is TokenKind.ERROR:
            return
        position = _skip_white_space(text, position + len(token.text))
    yield Token(TokenKind.END, len(text), "", "")


def _skip_white_space(text: str, position: int) -> int:
    match = _NOT_WHITE_SPACE.search(text, position)
    return match.start() if match else len(text)


def _token_at(text: str, position: int) -> Token:
    character = text[position]
    if character in _QUOTED:
        return _quoted(text, position)
    if character == "$":
        return _system_name(text, position)
    if text.startswith(_COMMENT, position):
        return _error(text, position, "there are no comments; two signs need a space between")
    if number := _NUMBER.match(text, position):
        return Token(TokenKind.NUMBER, position, number[0], number[0])
    if name := _name_at(text, position):
        return _word(name, position)
    if operator := _OPERATOR.match(text, position):
        value = "!=" if operator[0] == "<>" else operator[0]
        return Token(TokenKind.OPERATOR, position, operator[0], value)
    return _error(text, position, f"unexpected character {character!r}")


def _quoted(text: str, position: int) -> Token:
    quote = text[position]
    kind, pattern = _QUOTED[quote]
    match = pattern.match(text, position)
    if match is None:
        return _error(text, position, f"no closing {quote} for this one")
    value = match[0][1:-1].replace(quote * 2, quote)
    if kind is TokenKind.QUOTED_NAME and not value:
        return _error(text, position, "a quoted name cannot be empty")
    return Token(kind, position, match[0], value)


def _system_name(text: str, position: int) -> Token:
    name = _name_at(text, position + 1)
    if not name:
        return _error(text, position, "expected a name directly after $")
    return Token(TokenKind.SYSTEM_NAME, position, "$" + name, name)


def _word(name: str, position: int) -> Token:
    keyword = ascii_upper(name)
    if keyword in KEYWORDS:
        return Token(TokenKind.KEYWORD, position, name, keyword)
    return Token(TokenKind.NAME, position, name, name)


def _name_at(text: str, position: int) -> str:
    """Give the name that starts at `position`, empty if none does."""
    match = _WORD.match(text, position)
    if match is None or not _starts_name(match[0][0]):
        return ""
    word = match[0]
    if word.isascii():
        return word
    length = next((i for i, character in enumerate(word) if not _continues_name(character)), None)
    return word[:length]


def _starts_name(character: str) -> bool:
    if character.isascii():
        return not character.isdigit()
    return category(character).startswith("L")


def _continues_name(character: str) -> bool:
    return character.isascii() or category(character)[0] in "LMN"


def ascii_upper(text: str) -> str:
    """Give `text` in capitals if it is ASCII, else unchanged: ß is never SS."""
    return text.upper() if text.isascii() else text


def ascii_lower(text: str) -> str:
    """Give `text` in small letters if it is ASCII, else unchanged: the Kelvin sign is no k."""
    return text.lower() if text.isascii() else text


def _error(text: str, position: int, message: str, kind: ErrorKind = "syntax") -> Token:
    error = WhereError(position, kind, message)
    return Token(TokenKind.ERROR, position, text[position], "", error)
