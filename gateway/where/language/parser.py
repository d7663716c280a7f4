"""Parses tokens to a tree: the grammar (where-language 3), by precedence climbing.

The parser recurses only where a level of nesting opens, and those are bounded.
"""

from collections.abc import Callable
from typing import Final

from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter
from gateway.pieces import Pieces, complete
from gateway.where.language.conversions import ORDERS, Number, read_number
from gateway.where.language.errors import WhereError
from gateway.where.language.expression import (
    And,
    Arithmetic,
    BareName,
    Between,
    Call,
    Cast,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Not,
    Or,
    PayloadPath,
    SearchedCase,
    Sign,
    SimpleCase,
    Stateful,
    SystemField,
    TopicLevel,
    TopicMatches,
    UserProperty,
)
from gateway.where.language.functions import FUNCTIONS, STATEFUL_FUNCTIONS, TYPE_NAMES
from gateway.where.language.lexer import Token, TokenKind, ascii_lower, ascii_upper, tokenize
from gateway.where.language.like import parse_pattern

EXPRESSION_BYTES: Final = 4096
"""Longest `$where` value, in bytes of UTF-8 (where-language 11)."""

NESTING_LEVELS: Final = 32
"""Most `(`, CASE, NOT and signs open at a time; bounds the recursion of parser and evaluation."""

PATTERN_CODE_POINTS: Final = 256
"""Longest LIKE pattern."""

ARRAY_INDEX: Final = 2_147_483_647
"""Highest index of a payload array or a topic level."""

LONG: Final = 512
"""Characters above which an expression is compiled in pieces: fewer take a millisecond or two."""

BARE_SYSTEM_FIELDS: Final = frozenset(
    {
        *("topic", "qos", "retain", "clientid", "username", "payload"),
        *("content_type", "response_topic", "correlation_data"),
    }
)
"""The nine fields that need no `$`; frozen (where-language 6.1)."""

SYSTEM_FIELDS: Final = BARE_SYSTEM_FIELDS | {
    *("payload_size", "payload_format", "message_expiry", "received_at"),
}

_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _UNARY = range(1, 8)
"""How tightly operators bind."""

_BINDING: Final = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys([*ORDERS, "IS", "NOT", "IN", "BETWEEN", "LIKE"], _PREDICATE),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/%", _PRODUCT),
}
"""How tightly a token binds the operand before it."""

_SYMBOLS: Final = (TokenKind.OPERATOR, TokenKind.KEYWORD)
_KEYS: Final = (TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.KEYWORD)
_CONSTANTS: Final = {"NULL": None, "TRUE": True, "FALSE": False}
_INDEX_DIGITS: Final = len(str(ARRAY_INDEX))


def parse(text: str, *, stateful: bool = False) -> Expression:
    """Return the tree of a whole `$where` value; raise WhereError if it is invalid.

    `stateful` allows the functions of an uplink rule (where-language 13).
    """
    return complete(parse_in_pieces(text, stateful=stateful))


def parse_in_pieces(text: str, *, stateful: bool = False) -> Pieces[Expression]:
    """Do the same, a LONG text in two pieces: the longest take some 3 ms in each."""
    size = len(text.encode(errors="surrogatepass"))
    if size > EXPRESSION_BYTES:
        message = f"the expression has {size} bytes, the limit is {EXPRESSION_BYTES}"
        raise WhereError(0, "limit", message)
    tokens = tokenize(text)
    if len(text) >= LONG:
        yield
    return _Parser(tokens, stateful=stateful).parse()


class _Parser:
    """Reads tokens from the first one on; `_token` is the next one."""

    __slots__ = ("_index", "_open_levels", "_remembering", "_stateful", "_token", "_tokens")

    def __init__(self, tokens: list[Token], *, stateful: bool) -> None:
        self._tokens = tokens
        self._index = 0
        self._token = tokens[0]
        self._open_levels = 0
        self._stateful = stateful
        self._remembering: Token | None = None  # the function whose arguments are being read

    def parse(self) -> Expression:
        """Read a whole expression."""
        if self._at("WHERE"):
            self._advance()
        expression = self._expression(_OR)
        if self._token.kind is not TokenKind.END:
            raise self._failure("an operator or the end of the expression")
        return expression

    # Operators ---------------------------------------------------------------------------------

    def _expression(self, least: int = _OR) -> Expression:
        """Read an operand, and the following operators that bind at least as tightly as `least`."""
        if least <= _NOT and self._at("NOT"):
            self._open()
            left: Expression = Not(operands=(self._expression(_NOT),))
            self._open_levels -= 1
            most = _AND
        else:
            left, most = self._operand(), _PRODUCT
        while True:
            token = self._token
            binding = _BINDING.get(token.value, 0) if token.kind in _SYMBOLS else 0
            if not least <= binding <= most:
                return left
            chained = binding != _PREDICATE
            left = self._chain(left, binding) if chained else self._predicate(left)
            # predicates form no chain, and operators of other kinds have been read
            most = binding - 1

    def _chain(self, first: Expression, binding: int) -> Expression:
        """Read the rest of a chain of operators with the same precedence."""
        operands, operators = [first], []
        while self._token.kind in _SYMBOLS and _BINDING.get(self._token.value) == binding:
            operators.append(self._advance().value)
            operands.append(self._expression(binding + 1))
        if binding == _OR:
            return Or(operands=tuple(operands))
        if binding == _AND:
            return And(operands=tuple(operands))
        return Arithmetic(tuple(operators), operands=tuple(operands))

    def _predicate(self, left: Expression) -> Expression:
        operator = self._advance().value
        if operator in ORDERS:
            return Comparison(operator, operands=(left, self._expression(_SUM)))
        if operator == "IS":
            return self._is(left)
        if operator != "NOT":
            return _TESTS[operator](self, left)
        if not self._at(*_TESTS):
            raise self._failure("IN, BETWEEN or LIKE")
        return Not(operands=(_TESTS[self._advance().value](self, left),))

    def _is(self, left: Expression) -> Expression:
        negated = self._accept("NOT")
        if not self._at(*_CONSTANTS):
            raise self._failure("NULL, TRUE or FALSE" if negated else "NULL, NOT, TRUE or FALSE")
        keyword = self._advance().value
        test: Expression
        if keyword == "NULL":
            test = IsNull(operands=(left,))
        else:
            test = IsTruth(keyword == "TRUE", operands=(left,))
        return Not(operands=(test,)) if negated else test

    def _in(self, left: Expression) -> In:
        self._open_parenthesis()
        operands = [left, self._expression()]
        while self._accept(","):
            operands.append(self._expression())
        self._close_parenthesis("an operator, ',' or ')'")
        return In(operands=tuple(operands))

    def _between(self, left: Expression) -> Between:
        low = self._expression(_SUM)
        self._expect("AND")
        return Between(operands=(left, low, self._expression(_SUM)))

    def _like(self, left: Expression) -> Like:
        token = self._string("a pattern between single quotes")
        if len(token.value) > PATTERN_CODE_POINTS:
            message = f"a pattern has at most {PATTERN_CODE_POINTS} code points"
            raise WhereError(token.position, "limit", message)
        escape = None
        if self._accept("ESCAPE"):
            escaping = self._string("the escape character between single quotes")
            escape = escaping.value
            if len(escape) != 1:
                message = f"ESCAPE takes exactly one character, not {len(escape)}"
                raise WhereError(escaping.position, "syntax", message)
        try:
            pattern = parse_pattern(token.value, escape)
        except ValueError as error:
            raise WhereError(token.position, "syntax", str(error)) from error
        return Like(pattern, operands=(left,))

    # Operands ----------------------------------------------------------------------------------

    def _operand(self) -> Expression:
        """Read a literal, a group, a signed operand, CASE, CAST, a call or a field."""
        token = self._token
        kind, value = token.kind, token.value
        if kind is TokenKind.NUMBER:
            return Literal(self._number())
        if kind is TokenKind.STRING:
            return Literal(self._advance().value)
        if kind is TokenKind.OPERATOR and value == "(":
            self._open()
            inner = self._expression()
            self._close_parenthesis("an operator or ')'")
            return inner
        if kind is TokenKind.OPERATOR and value in "+-":
            return self._signed()
        if kind is TokenKind.KEYWORD:
            if value in _CONSTANTS:
                return Literal(_CONSTANTS[self._advance().value])
            if value == "CASE":
                return self._case()
            if value == "CAST":
                return self._cast()
        elif kind in (TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.SYSTEM_NAME):
            return self._named()
        raise self._failure("an operand")

    def _number(self, sign: str = "") -> Number:
        """Read a number literal; return its value with its sign."""
        token = self._advance()
        value = read_number(sign + token.text)
        if value is None:
            raise WhereError(token.position, "syntax", "this number is outside the range of REAL")
        return value

    def _signed(self) -> Expression:
        sign = self._open().value
        signed: Expression
        if sign == "-" and self._token.kind is TokenKind.NUMBER:
            signed = Literal(self._number(sign))
        else:
            signed = Sign(sign, operands=(self._expression(_UNARY),))
        self._open_levels -= 1
        return signed

    def _case(self) -> Expression:
        self._open()
        subject = () if self._at("WHEN") else (self._expression(),)
        operands = [*subject]
        self._expect("WHEN")
        operands += self._branch()
        while self._accept("WHEN"):
            operands += self._branch()
        operands.append(self._expression() if self._accept("ELSE") else Literal(None))
        self._expect("END")
        self._open_levels -= 1
        kind = SimpleCase if subject else SearchedCase
        return kind(operands=tuple(operands))

    def _branch(self) -> tuple[Expression, Expression]:
        condition = self._expression()
        self._expect("THEN")
        return condition, self._expression()

    def _cast(self) -> Cast:
        self._advance()
        self._open_parenthesis()
        inner = self._expression()
        self._expect("AS")
        token = self._token
        to = TYPE_NAMES.get(ascii_upper(token.text)) if token.kind is TokenKind.NAME else None
        if to is None:
            raise self._failure("INTEGER, REAL, STRING or BOOLEAN")
        self._advance()
        self._close_parenthesis()
        return Cast(to, operands=(inner,))

    # Calls -------------------------------------------------------------------------------------

    def _call(self) -> Expression:
        token = self._advance()
        name = ascii_upper(token.text)
        if name == "TOPIC_MATCHES":
            return self._topic_matches()
        if name in STATEFUL_FUNCTIONS:
            return self._stateful_call(token, name)
        if name not in FUNCTIONS:
            raise WhereError(token.position, "syntax", f"there is no function {token.shown()}")
        function = FUNCTIONS[name]
        arguments = self._arguments()
        if not function.accepts(len(arguments)):
            raise _wrong_count(token, function.arity, arguments)
        return Call(name, operands=arguments)

    def _stateful_call(self, token: Token, name: str) -> Stateful:
        """Read the arguments of a function with memory; none of them may have a memory itself."""
        if not self._stateful:
            message = f"{name} needs the memory of an uplink rule and is not available here"
            raise WhereError(token.position, "syntax", message)
        outer = self._remembering
        if outer is not None:
            message = f"{outer.text} cannot contain {token.text}, which remembers, too"
            raise WhereError(outer.position, "syntax", message)
        self._remembering = token
        arguments = self._arguments()
        self._remembering = None
        count = STATEFUL_FUNCTIONS[name]
        if len(arguments) != count:
            arity = "1 argument" if count == 1 else f"{count} arguments"
            raise _wrong_count(token, arity, arguments)
        return Stateful(name, operands=arguments)

    def _arguments(self) -> tuple[Expression, ...]:
        self._open_parenthesis()
        arguments: list[Expression] = []
        if not self._at(")"):
            arguments.append(self._expression())
            while self._accept(","):
                arguments.append(self._expression())
        self._close_parenthesis("an operator, ',' or ')'")
        return tuple(arguments)

    def _topic_matches(self) -> TopicMatches:
        self._open_parenthesis()
        token = self._string("a topic filter between single quotes")
        try:
            check_topic_filter(token.value)
        except MqttError as error:
            raise WhereError(token.position, "syntax", error.reason) from error
        if token.value.startswith(SHARED_PREFIX):
            message = "TOPIC_MATCHES takes no shared subscription's topic filter"
            raise WhereError(token.position, "syntax", message)
        self._close_parenthesis()
        return TopicMatches(token.value)

    # Fields (where-language 6) -----------------------------------------------------------------

    def _named(self) -> Expression:
        """Read a call or a field, which begins with a name."""
        token = self._token
        following = self._tokens[self._index + 1]
        called = following.kind is TokenKind.OPERATOR and following.value == "("
        if called and token.kind is TokenKind.NAME:
            return self._call()
        self._advance()
        name = ascii_lower(token.value)
        if token.kind is TokenKind.SYSTEM_NAME:
            if name == "user":
                self._expect(".", "a dot and the name of a user property")
                return UserProperty(self._key())
            if name not in SYSTEM_FIELDS:
                raise WhereError(token.position, "syntax", f"there is no field {token.shown()}")
        elif token.kind is TokenKind.QUOTED_NAME or name not in BARE_SYSTEM_FIELDS:
            if self._at(".", "["):
                message = (
                    "only payload, topic and $user lead to a path; a name with a dot needs quotes"
                )
                raise WhereError(self._token.position, "syntax", message)
            return BareName(token.value)
        if name == "payload":
            return self._payload()
        if name == "topic" and self._accept("["):
            return TopicLevel(self._array_index())
        return SystemField(name)

    def _payload(self) -> Expression:
        steps: list[str | int] = []
        while self._at(".", "["):
            steps.append(self._key() if self._advance().value == "." else self._array_index())
        return PayloadPath(tuple(steps)) if steps else SystemField("payload")

    def _key(self) -> str:
        token = self._token
        if token.kind not in _KEYS:
            raise self._failure("a name")
        self._advance()
        return token.text if token.kind is TokenKind.KEYWORD else token.value

    def _array_index(self) -> int:
        """Read what follows a `[`, including the `]`."""
        token = self._token
        if token.kind is not TokenKind.NUMBER:
            raise self._failure("an index, digits only")
        digits = token.text.lstrip("0") or "0"
        if not token.text.isdigit() or len(digits) > _INDEX_DIGITS or int(digits) > ARRAY_INDEX:
            message = f"an index is a whole number from 0 to {ARRAY_INDEX}"
            raise WhereError(token.position, "syntax", message)
        self._advance()
        self._expect("]")
        return int(digits)

    # Tokens ------------------------------------------------------------------------------------

    def _advance(self) -> Token:
        """Advance past the next token, which must not be the last one; return it."""
        token = self._token
        self._index += 1
        self._token = self._tokens[self._index]
        return token

    def _at(self, *symbols: str) -> bool:
        """Return whether one of these keywords or operators is next."""
        return self._token.kind in _SYMBOLS and self._token.value in symbols

    def _accept(self, symbol: str) -> bool:
        """Read this keyword or operator if it is next; return whether it was."""
        if accepted := self._at(symbol):
            self._advance()
        return accepted

    def _expect(self, symbol: str, expected: str | None = None) -> None:
        """Read this keyword or operator, or fail, naming the alternatives."""
        if not self._accept(symbol):
            raise self._failure(expected or (symbol if symbol.isalpha() else repr(symbol)))

    def _string(self, expected: str) -> Token:
        """Read a string literal or fail."""
        if self._token.kind is not TokenKind.STRING:
            raise self._failure(expected)
        return self._advance()

    def _open(self) -> Token:
        """Read the token that opens a level of nesting; the caller closes it."""
        if self._open_levels == NESTING_LEVELS:
            message = f"more than {NESTING_LEVELS} levels of (, CASE, NOT and signs"
            raise WhereError(self._token.position, "limit", message)
        self._open_levels += 1
        return self._advance()

    def _open_parenthesis(self) -> None:
        if not self._at("("):
            raise self._failure("'('")
        self._open()

    def _close_parenthesis(self, expected: str | None = None) -> None:
        self._expect(")", expected)
        self._open_levels -= 1

    def _failure(self, expected: str) -> WhereError:
        """Return the error of the next token: its own, or what was expected instead."""
        token = self._token
        if token.error is not None:
            return token.error
        message = f"expected {expected}, found {token.shown()}"
        return WhereError(token.position, "syntax", message)


def _wrong_count(token: Token, arity: str, arguments: tuple[Expression, ...]) -> WhereError:
    message = f"{token.text} takes {arity}, not {len(arguments)}"
    return WhereError(token.position, "syntax", message)


_TESTS: Final[dict[str, Callable[[_Parser, Expression], Expression]]] = {
    "IN": _Parser._in,  # noqa: SLF001 - a table of the class's own methods
    "BETWEEN": _Parser._between,  # noqa: SLF001
    "LIKE": _Parser._like,  # noqa: SLF001
}
"""The tests that may follow a NOT."""
