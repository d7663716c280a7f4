"""Splits a text into tokens (where-language 2).

Invalid text becomes the last token with its error, so that the error is reported when the parser
reaches it and not before.
"""

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from gateway.where.language.conversions import NUMBER_LITERAL
from gateway.where.language.errors import ErrorKind, WhereError

EXPRESSION_TOKENS: Final = 1024
"""Most tokens of an expression (where-language 11), without its end."""

KEYWORDS: Final = frozenset(
    {
        *("WHERE", "AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "LIKE", "ESCAPE"),
        *("BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "AS"),
    }
)

_SHOWN_CODE_POINTS: Final = 40
"""Longest part of the expression that an error message repeats."""


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


class Token(NamedTuple):
    """A token at its position; `text` is as spelled, `value` its meaning.

    The value is a keyword's capitals, a quoted text without its quotes, a system name without `$`,
    an operator with `!=` for `<>`. `error` is set if and only if the kind is ERROR.
    """

    kind: TokenKind
    position: int
    text: str
    value: str
    error: WhereError | None = None

    def shown(self) -> str:
        """Return the token in the form of an error message."""
        if self.kind is TokenKind.END:
            return "the end of the expression"
        rest = "..." if len(self.text) > _SHOWN_CODE_POINTS else ""
        return repr(self.text[:_SHOWN_CODE_POINTS]) + rest


# ASCII letters, `_` and all that is not ASCII; negated, which compiles in a tenth of the time.
_NAME: Final = r"[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*"

# The first alternative that matches counts: `.5` is a number before `.` is an operator.
# Quantifiers between quotes are possessive, so that a doubled quote never ends an
# unterminated literal.
_TOKEN: Final = re.compile(
    rf"""[ \t\n\r]*(?:
      (?P<NUMBER>{NUMBER_LITERAL})
    | (?P<NAME>{_NAME})
    | (?P<SYSTEM_NAME>\${_NAME})
    | (?P<STRING>'[^']*+(?:''[^']*+)*+')
    | (?P<QUOTED_NAME>"[^"]*+(?:""[^"]*+)*+"|`[^`]*+(?:``[^`]*+)*+`)
    | (?P<OPERATOR><>|[!<>]=|(?!--|/\*)[=<>+*/%(),.\[\]-])
    | (?P<ERROR>[^ \t\n\r])
    )""",
    re.VERBOSE,
)
_KINDS: Final = {kind.name: kind for kind in TokenKind}


def tokenize(text: str) -> list[Token]:
    """Split `text` into tokens; only the last one is of kind END or ERROR."""
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.match(text, position):
        group = match.lastgroup or ""
        kind = _KINDS[group]
        begin = match.start(group)
        spelled = value = match[group]
        if kind is TokenKind.NAME or kind is TokenKind.SYSTEM_NAME:
            if not spelled.isascii():
                spelled = _name(spelled)
            value = spelled.lstrip("$")
            if spelled.isascii() and spelled.upper() in KEYWORDS:
                kind, value = TokenKind.KEYWORD, spelled.upper()
        elif kind is TokenKind.STRING or kind is TokenKind.QUOTED_NAME:
            quote = spelled[0]
            value = spelled[1:-1].replace(quote * 2, quote)
        elif spelled == "<>":
            value = "!="
        if kind is TokenKind.ERROR or (not value and kind is not TokenKind.STRING):
            return [*tokens, _error(text, begin, _message(text, begin, kind))]
        if len(tokens) == EXPRESSION_TOKENS:
            message = f"an expression has at most {EXPRESSION_TOKENS} tokens"
            return [*tokens, _error(text, begin, message, "limit")]
        tokens.append(Token(kind, begin, spelled, value))
        position = begin + len(spelled)
    return [*tokens, Token(TokenKind.END, len(text), "", "")]


def _name(word: str) -> str:
    """Return the longest name at the beginning of a word, after a `$` if it has one.

    The pattern treats all characters beyond ASCII as letters; names have only letters, marks and
    digits, and begin with a letter.
    """
    if word.isascii():
        return word
    from unicodedata import category

    first = int(word[0] == "$")
    for place, character in enumerate(word):
        allowed = "L" if place == first else "LMN"
        if not character.isascii() and category(character)[0] not in allowed:
            return word[:place]
    return word


def _message(text: str, position: int, kind: TokenKind) -> str:
    """Return the fault of the text at a position that looks like `kind` but is none."""
    character = text[position]
    if kind is TokenKind.QUOTED_NAME:
        return "a quoted name cannot be empty"
    if character in ("'", '"', "`"):
        return f"no closing {character} for this one"
    if character == "$":
        return "expected a name directly after $"
    if text.startswith(("--", "/*"), position):
        return "there are no comments; two signs need a space between"
    return f"unexpected character {character!r}"


def _error(text: str, position: int, message: str, kind: ErrorKind = "syntax") -> Token:
    error = WhereError(position, kind, message)
    return Token(TokenKind.ERROR, position, text[position], "", error)


def ascii_upper(text: str) -> str:
    """Return `text` in capitals if it is ASCII, else unchanged: ß is never SS."""
    return text.upper() if text.isascii() else text


def ascii_lower(text: str) -> str:
    """Return `text` in small letters if it is ASCII, else unchanged: the Kelvin sign is no k."""
    return text.lower() if text.isascii() else text
