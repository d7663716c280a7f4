"""Compiles a text to an expression, and finds its terms for an index: the entry to this package."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.mqtt.message import ORDINARY, Message
from gateway.pieces import Pieces, complete
from gateway.where.evaluation import closures
from gateway.where.evaluation.closures import Builder, Compiler, Condition, Reader
from gateway.where.evaluation.shared_parts import KINDS, SharedParts
from gateway.where.figures import Figures
from gateway.where.generated import generate
from gateway.where.language.conversions import MIRRORED, Number, Value, to_boolean
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
    SystemField,
    TopicLevel,
    TopicMatches,
    UserProperty,
    canonical_key,
    conjuncts,
    walk,
)
from gateway.where.language.folding import can_be, fold, without_identity
from gateway.where.language.parser import LONG, parse_in_pieces
from gateway.where.language.work import NODE, adds_up


class Where:
    """A compiled expression.

    `text` is the expression as given, `expression` its tree with constant parts folded, and
    `never_true` means that no message can pass, which deserves a warning (where-language 9).
    `evaluate` returns TO_BOOLEAN of the expression's value for a message, None for NULL. It raises
    only OverBudgetError, if the message has not enough `work_left`: `steps` is its work without the
    lengths of texts. A `fixed` one costs that for any message, and no more than ORDINARY. It
    occupies about `bytes`. The caller counts evaluations in `figures`; without `identity`,
    `$clientid` and `$username` are NULL for it.
    """

    __slots__ = (
        "__weakref__",
        "bytes",
        "evaluate",
        "expression",
        "figures",
        "fixed",
        "identity",
        "never_true",
        "steps",
        "text",
    )

    def __init__(self, text: str, expression: Expression, *, identity: bool = True) -> None:
        self.text = text
        self.identity = identity
        self.expression = expression
        self.never_true = not can_be(expression, truth=True)
        self.figures = Figures()
        nodes = walk(expression)
        self.steps = NODE * len(nodes)
        self.fixed = self.steps <= ORDINARY and not adds_up(nodes)
        self.bytes = expression_bytes(text, nodes)
        self.evaluate: Condition = SHARING.truth(expression)

    def passes(self, message: Message) -> bool:
        """Return whether `message` passes: only TRUE does (where-language 9)."""
        return self.evaluate(message) is True

    def promote(self) -> bool:
        """Make `evaluate` faster, once and for an expression that is evaluated often.

        Returns False, without a change, if that is impossible.
        """
        generated = generate(self.expression, SHARING)
        if generated is not None:
            self.evaluate = generated
        return generated is not None


def compile_where(text: str, *, identity: bool = True) -> Where:
    """Return the compiled expression; raise WhereError if `text` is invalid.

    Without `identity`, `$clientid` and `$username` are NULL for it (where-language 12.6).
    """
    return complete(compile_in_pieces(text, identity=identity))


def compile_value(text: str) -> Reader:
    """Return what reads an expression's value from a message; raise WhereError for an invalid text.

    For expressions of the configuration: their work is not bounded.
    """
    return COMPILER.value(fold(complete(parse_in_pieces(text)), constant_value))


def compile_in_pieces(text: str, *, identity: bool = True) -> Pieces[Where]:
    """Do the same, a LONG text in pieces: the longest take some 3 ms in each."""
    long = len(text) >= LONG
    expression = yield from parse_in_pieces(text)
    if long:
        yield
    if not identity:
        expression = without_identity(expression)
    expression = fold(expression, constant_value)
    if long:
        yield
    return Where(text, expression, identity=identity)


class TreeCompiler:
    """Compiles each node by its row in a table: that of the language and `more`."""

    def __init__(self, more: Mapping[type[Expression], Builder] | None = None) -> None:
        self._builders = {**_BUILDERS, **(more or {})}

    def value(self, expression: Expression) -> Reader:
        """Return a closure that returns the value of `expression`."""
        return self._builders[type(expression)](expression, self)

    def shares(self, _: Expression) -> bool:
        """Return whether other expressions have this part, too: here none."""
        return False

    def truth(self, expression: Expression) -> Condition:
        """Return a closure that returns the TO_BOOLEAN of `expression`."""
        read = self._builders[type(expression)](expression, self)
        if type(expression) in _CONDITIONS:
            return read
        return lambda message: to_boolean(read(message))


class SharingCompiler(TreeCompiler):
    """Compiles expressions that share the values of parts for a message."""

    def __init__(self) -> None:
        self._parts = SharedParts()
        super().__init__({kind: self._parts.builder(_BUILDERS[kind]) for kind in KINDS})

    def shares(self, expression: Expression) -> bool:
        """Return whether other expressions have this part, too."""
        return self._parts.shares(expression)


def constant_value(expression: Expression) -> Value:
    """Return the value of an expression whose operands are all literals."""
    return COMPILER.value(expression)(_NO_MESSAGE)


def _literal(expression: Literal, _: Compiler) -> Reader:
    value = expression.value
    return lambda _: value


_NO_MESSAGE: Final = Message("")

_CONDITIONS: Final[dict[type[Expression], Builder]] = {
    Not: closures.negation,
    And: closures.conjunction,
    Or: closures.disjunction,
    IsNull: closures.is_null,
    IsTruth: closures.is_truth,
    Comparison: closures.comparison,
    In: closures.membership,
    Between: closures.between,
    Like: closures.like,
    TopicMatches: closures.topic_matches,
}
"""Nodes whose value is a BOOLEAN or NULL, and so its own TO_BOOLEAN."""

_BUILDERS: Final[dict[type[Expression], Builder]] = {
    **_CONDITIONS,
    Literal: _literal,
    SystemField: closures.system_field,
    TopicLevel: closures.topic_level,
    UserProperty: closures.user_property,
    BareName: closures.bare_name,
    PayloadPath: closures.payload_path,
    Arithmetic: closures.arithmetic,
    Sign: closures.sign,
    SearchedCase: closures.searched_case,
    SimpleCase: closures.simple_case,
    Cast: closures.cast,
    Call: closures.call,
}

COMPILER: Final = TreeCompiler()
"""Compiles what a subscription filter may contain: all but Stateful."""

SHARING: Final = SharingCompiler()
"""Compiles the subscription filters themselves."""


EXPRESSION: Final = 800
"""Bytes of an expression itself, with its figures and its table entries."""

NODE_BYTES: Final = 500
"""Bytes of a node of the tree and of its closure."""

CHARACTER: Final = 30
"""Bytes for each character of the text: names, paths and topic filters are stored in parts."""

LIKE: Final = 1_200
PATTERN: Final = 150
"""Bytes of a LIKE, and of each element of its pattern, beside those of any node."""


def expression_bytes(text: str, nodes: Sequence[Expression]) -> int:
    """Return about the most bytes of a compiled expression; plain texts take less."""
    size = EXPRESSION + CHARACTER * len(text) + NODE_BYTES * len(nodes)
    for node in nodes:
        if isinstance(node, Like):
            size += LIKE + PATTERN * len(node.pattern)
    return size


_IN_JSON: Final = (BareName, PayloadPath)

INDEXED_NODES: Final = 12
"""The most nodes of an operand that an index computes for each message."""

_KINDS: Final = {"=": 0, "BETWEEN": 1}
_ONE_BOUND: Final = 2
"""Equalities distinguish messages better than two bounds, two bounds better than one."""


@dataclass(frozen=True, slots=True)
class Term:
    """`operand operator constant`, or `operand BETWEEN constant AND high`.

    `constant` is a number, or in an equality a text. A term is `whole` if it is the entire
    expression. `key` is the same for the same operand in any expression; `nodes` is its size.
    """

    operand: Expression
    operator: str
    constant: Any
    high: Number = 0
    whole: bool = False
    key: Hashable = None
    nodes: int = 0

    def reader(self) -> Reader:
        """Return a function that computes the operand's value for a message."""
        return SHARING.value(self.operand)


def terms(expression: Expression) -> list[Term]:
    """Return the terms that must be TRUE for a folded expression, if an index can compute them.

    The best is first. Of the same kind, the operand with the least cost comes first: fields outside
    the JSON payload, then those in it, then functions of fields.
    """
    parts = conjuncts(expression)
    found = []
    for part in parts:
        term = _term(part, whole=len(parts) == 1)
        if term is not None:
            found.append(term)
    return found if len(found) < 2 else sorted(found, key=_rank)


def _rank(term: Term) -> tuple[int, int]:
    operand = term.operand
    cost = 2 if operand.operands else int(isinstance(operand, _IN_JSON))
    return _KINDS.get(term.operator, _ONE_BOUND), cost


def _term(part: Expression, *, whole: bool) -> Term | None:
    """Return a part of a conjunction as a term, None if it is none.

    An operand whose cost depends on the message is excluded: nobody is charged for an index.
    """
    high: Number | None = 0
    if isinstance(part, Comparison) and part.operator != "!=":
        operand, other = part.operands
        operator = part.operator
        if isinstance(operand, Literal):
            operand, other, operator = other, operand, MIRRORED[operator]
        constant = _number(other) if operator != "=" else _distinct(other)
    elif isinstance(part, Between):
        operand, operator = part.operands[0], "BETWEEN"
        constant, high = map(_number, part.operands[1:])
    else:
        return None
    if constant is None or high is None:
        return None
    nodes = walk(operand)
    if len(nodes) > INDEXED_NODES or adds_up(nodes):
        return None
    return Term(operand, operator, constant, high, whole, canonical_key(nodes), len(nodes))


def _number(expression: Expression) -> Number | None:
    """Return the number that the expression is, None if it is none."""
    if isinstance(expression, Literal) and isinstance(expression.value, int | float):
        return None if isinstance(expression.value, bool) else expression.value
    return None


def _distinct(expression: Expression) -> str | Number | None:
    """Return the number or text that the expression is.

    None for a BOOLEAN and for a text that reads as one: they have too few values to distinguish
    messages, and a rule of their own (where-language 5).
    """
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value if to_boolean(expression.value) is None else None
    return _number(expression)
