"""The parser's place among the tokens, with the nesting it has opened there."""

from gateway.where.language.errors import WhereError
from gateway.where.language.lexer import Token, TokenKind, tokenize
from gateway.where.language.limits import NESTING_LEVELS


class TokenCursor:
    """Looks at the current token, takes it, or fails at it.

    `stateful` says that functions that remember may be called, and `remembering` is the name of
    the one whose arguments are being read.
    """

    __slots__ = ("_index", "_open_levels", "_tokens", "current", "remembering", "stateful")

    def __init__(self, text: str, *, stateful: bool = False) -> None:
        self._tokens = tokenize(text)
        self._index = 0
        self._open_levels = 0
        self.stateful = stateful
        self.remembering: Token | None = None
        self.current: Token = self._tokens[0]

    def advance(self) -> Token:
        """Take the current token, which must not be the last one."""
        taken = self.current
        self._index += 1
        self.current = self._tokens[self._index]
        return taken

    def at_keyword(self, *keywords: str) -> bool:
        """Say whether the current token is one of these keywords."""
        return self.current.kind is TokenKind.KEYWORD and self.current.value in keywords

    def at_operator(self, *operators: str) -> bool:
        """Say whether the current token is one of these operators."""
        return self.current.kind is TokenKind.OPERATOR and self.current.value in operators

    def at_call(self) -> bool:
        """Say whether the current token is an unquoted name with a `(` behind it."""
        if self.current.kind is not TokenKind.NAME:
            return False
        following = self._tokens[self._index + 1]
        return following.kind is TokenKind.OPERATOR and following.value == "("

    def take_keyword(self, keyword: str) -> bool:
        """Take the current token if it is this keyword."""
        if taken := self.at_keyword(keyword):
            self.advance()
        return taken

    def take_operator(self, operator: str) -> bool:
        """Take the current token if it is this operator."""
        if taken := self.at_operator(operator):
            self.advance()
        return taken

    def expect_keyword(self, keyword: str) -> None:
        """Take this keyword or fail."""
        if not self.take_keyword(keyword):
            raise self.failure(keyword)

    def expect_operator(self, operator: str, expected: str | None = None) -> None:
        """Take this operator or fail, naming what else could stand here."""
        if not self.take_operator(operator):
            raise self.failure(expected or repr(operator))

    def expect_string(self, expected: str) -> Token:
        """Take a string literal or fail."""
        if self.current.kind is not TokenKind.STRING:
            raise self.failure(expected)
        return self.advance()

    def open(self) -> Token:
        """Take the token that opens a level of nesting (where-language 11)."""
        if self._open_levels == NESTING_LEVELS:
            message = f"more than {NESTING_LEVELS} levels of (, CASE, NOT and signs"
            raise WhereError(self.current.position, "limit", message)
        self._open_levels += 1
        return self.advance()

    def open_parenthesis(self) -> None:
        """Take a `(` and open its level, or fail."""
        if not self.at_operator("("):
            raise self.failure("'('")
        self.open()

    def close(self) -> None:
        """Leave the innermost level; its last token is already taken."""
        self._open_levels -= 1

    def close_parenthesis(self, expected: str = "')'") -> None:
        """Take a `)` and leave its level, or fail, naming what else could stand here."""
        self.expect_operator(")", expected)
        self.close()

    def failure(self, expected: str) -> WhereError:
        """Return the error of the current token: its own, or that something else was expected."""
        token = self.current
        if token.error is not None:
            return token.error
        message = f"expected {expected}, found {token.shown()}"
        return WhereError(token.position, "syntax", message)
