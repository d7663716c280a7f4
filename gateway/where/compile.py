"""Compiles a text to an expression: the entry to this package."""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.mqtt.message import ORDINARY, Message
from gateway.pieces import Pieces, complete
from gateway.where.evaluation import closures
from gateway.where.evaluation.closures import Builder, Compiler, Condition, Reader
from gateway.where.evaluation.shared_parts import KINDS, SharedParts
from gateway.where.figures import Figures
from gateway.where.generated import generate
from gateway.where.language.conversions import Value, to_boolean
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
