"""What Spark decides of a rule by itself, so that the evaluator need not look at the message.

Spark says TRUE, FALSE or NULL only where it can mean nothing else: for logic, comparisons and LIKE
over a message's columns and over members of a flat JSON object without escapes or exponents. For
any other message, and for any other expression, it leaves the decision to the gateway's evaluator.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from gateway.where.language.expression import (
    And,
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
    PayloadPath,
    Stateful,
    SystemField,
    TopicLevel,
    TopicMatches,
    Wildcard,
    conjunction,
    conjuncts,
)

TRUE, FALSE, NULL = 1, 0, -1
"""What is decided; a null column says that nothing is."""

EXACT = 2**53
"""Integers below it are themselves as REAL, and no other integer becomes one of them."""
_NUMBER = r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?"
_MEMBER = rf'"[A-Za-z0-9_]+"\s*:\s*("[^"\\\p{{Cntrl}}]*"|{_NUMBER}|true|false|null)'
_FLAT = rf"^\{{\s*{_MEMBER}(\s*,\s*{_MEMBER})*\s*\}}$"
_FLAT_BYTES = 2_048
"""Longer payloads are left to the evaluator."""
_NAME = re.compile("[A-Za-z0-9_]{1,64}")
_SENT_ALONE = {"SENT", "DEADBAND", "EVERY"}
"""Functions that remember nothing of a message that is not sent."""


class UndecidableError(Exception):
    """The expression is left to the evaluator."""


@dataclass(frozen=True)
class Operand:
    """A value as columns: `kind` is number, text or truth."""

    kind: str
    column: Column


@dataclass
class _Translation:
    """Collects what must hold of a message, so that Spark's answer is the evaluator's."""

    safe: list[Column] = field(default_factory=list)

    def truth(self, expression: Expression) -> Column:
        """Return the expression as BOOLEAN."""
        form = _TRUTHS.get(type(expression))
        if form is not None:
            return form(self, expression)
        operand = self.operand(expression, "number")
        if operand.kind == "number":
            return operand.column != 0
        if operand.kind == "text":
            word = F.lower(operand.column)
            return F.when(word == "true", True).when(word == "false", False)  # noqa: FBT003
        return operand.column

    def operand(self, expression: Expression, wanted: str) -> Operand:
        """Return a value; a payload's member as the kind that is wanted."""
        if isinstance(expression, Literal):
            return _literal(expression.value, wanted)
        if isinstance(expression, SystemField):
            return self._system(expression.name)
        if isinstance(expression, TopicLevel):
            return Operand("text", F.get(F.split("topic", "/"), F.lit(expression.index)))
        if isinstance(expression, PayloadPath):
            return self._member(expression, wanted)
        if type(expression) in _TRUTHS:
            return Operand("truth", self.truth(expression))
        raise UndecidableError

    def _system(self, name: str) -> Operand:
        if name not in _FIELDS:
            raise UndecidableError
        kind, column = _FIELDS[name]()
        if kind == "number":
            column = column.cast("double")
            self.safe.append(column.isNull() | (F.abs(column) < EXACT))
        return Operand(kind, column)

    def _member(self, path: PayloadPath, wanted: str) -> Operand:
        raw = self.raw_member(path)
        if wanted == "number":
            number = F.when(raw.rlike("^[-0-9]"), raw.cast("double"))
            self.safe.append(raw.isNull() | raw.rlike("^[-0-9]"))
            return Operand("number", number)
        self.safe.append(raw.isNull() | raw.startswith('"'))
        return Operand("text", F.substring(raw, F.lit(2), F.length(raw) - 2))

    def raw_member(self, path: PayloadPath) -> Column:
        """Return a member's JSON text, null if it is absent or null."""
        (name, *deeper) = path.steps
        if deeper or not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise UndecidableError
        payload = F.try_validate_utf8(F.col("payload").cast("string"))
        self.safe.append(F.length("payload") <= _FLAT_BYTES)
        self.safe.append(F.coalesce(payload.rlike(_FLAT), F.lit(False)))  # noqa: FBT003
        once = F.regexp_count(payload, F.lit(rf'[{{,]\s*"{name}"\s*:')) <= 1
        self.safe.append(once)
        found = rf'[{{,]\s*"{name}"\s*:\s*("[^"]*"|[^\s,}}"]+)'
        raw = F.regexp_extract(payload, found, 1)
        return F.when((raw != "") & (raw != "null"), raw)

    def compare(self, operator: str, left: Expression, right: Expression) -> Column:
        """Compare two values of kinds that Spark compares as the evaluator does."""
        wanted = "text" if _is_text(left) or _is_text(right) else "number"
        a, b = self.operand(left, wanted), self.operand(right, wanted)
        if a.kind != b.kind:
            if "text" in (a.kind, b.kind):
                raise UndecidableError
            return _ORDERS[operator](a.column.cast("double"), b.column.cast("double"))
        return _ORDERS[operator](a.column, b.column)


def decision(expression: Expression) -> Column | None:
    """Return a column (TRUE, FALSE, NULL, or null for undecided); None if it never decides.

    Of a rule that remembers only what was sent, conjuncts that do not remember can decide that
    a message is not sent; whether it is, the evaluator says.
    """
    parts = conjuncts(expression)
    stateless = [part for part in parts if not any(_remembered(part))]
    rest = {name for part in parts if part not in stateless for name in _remembered(part)}
    asked = conjunction(stateless)
    if asked is None or not rest <= _SENT_ALONE:
        return None
    translation = _Translation()
    try:
        truth = translation.truth(asked)
    except UndecidableError:
        return None
    found = F.when(truth, F.lit(None if rest else TRUE))
    found = found.when(truth.isNull(), NULL).otherwise(FALSE).cast("tinyint")
    safe = reduce(Column.__and__, translation.safe, F.lit(True))  # noqa: FBT003
    return F.when(safe, found)


def _remembered(expression: Expression) -> list[str]:
    own = [expression.function] if isinstance(expression, Stateful) else []
    return own + [name for each in expression.operands for name in _remembered(each)]


def _literal(value: object, wanted: str) -> Operand:
    if value is None:
        kinds = {"number": "double", "text": "string"}
        return Operand(wanted, F.lit(None).cast(kinds[wanted]))
    if isinstance(value, bool):
        return Operand("truth", F.lit(value))
    if isinstance(value, int | float):
        if abs(value) > EXACT:
            raise UndecidableError
        return Operand("number", F.lit(float(value)))
    return Operand("text", F.lit(value))


def _is_text(expression: Expression) -> bool:
    if isinstance(expression, Literal):
        return isinstance(expression.value, str)
    if isinstance(expression, SystemField) and expression.name in _FIELDS:
        return _FIELDS[expression.name]()[0] == "text"
    return isinstance(expression, TopicLevel)


_FIELDS: dict[str, Callable[[], tuple[str, Column]]] = {
    "topic": lambda: ("text", F.col("topic")),
    "clientid": lambda: ("text", F.col("clientid")),
    "username": lambda: ("text", F.col("username")),
    "content_type": lambda: ("text", F.col("content_type")),
    "response_topic": lambda: ("text", F.col("response_topic")),
    "qos": lambda: ("number", F.coalesce(F.col("qos"), F.lit(1))),
    "retain": lambda: ("truth", F.coalesce(F.col("retain"), F.lit(False))),  # noqa: FBT003
    "payload_size": lambda: ("number", F.length("payload")),
    "message_expiry": lambda: ("number", F.col("message_expiry")),
    "payload_format": lambda: ("number", F.col("payload_format")),
    "received_at": lambda: ("number", F.col("event_ms")),
}

_ORDERS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _all(columns: Sequence[Column]) -> Column:
    return reduce(Column.__and__, columns)


def _any(columns: Sequence[Column]) -> Column:
    return reduce(Column.__or__, columns)


def _truths(it: _Translation, node: Expression) -> list[Column]:
    return [it.truth(each) for each in node.operands]


def _in(it: _Translation, node: In) -> Column:
    value, *elements = node.operands
    return _any([it.compare("=", value, each) for each in elements])


def _between(it: _Translation, node: Between) -> Column:
    value, low, high = node.operands
    return it.compare(">=", value, low) & it.compare("<=", value, high)


def _is_null(it: _Translation, node: IsNull) -> Column:
    (operand,) = node.operands
    if isinstance(operand, PayloadPath):
        return it.raw_member(operand).isNull()
    return it.operand(operand, "number").column.isNull()


def _is_truth(it: _Translation, node: IsTruth) -> Column:
    return it.truth(node.operands[0]).eqNullSafe(F.lit(node.truth))


def _like(it: _Translation, node: Like) -> Column:
    operand = it.operand(node.operands[0], "text")
    if operand.kind != "text":
        raise UndecidableError
    elements = (
        each.value if isinstance(each, Wildcard) else f"\\{each}" if each in "%_\\" else each
        for each in node.pattern
    )
    return operand.column.like("".join(elements))


def topic_matches(topic_filter: str) -> Column:
    """Return whether the column `topic` matches a valid topic filter."""
    levels = topic_filter.split("/")
    parts = F.split("topic", "/")
    tests = [F.size(parts) == len(levels)]
    if levels[-1] == "#":
        levels = levels[:-1]
        tests = [F.size(parts) >= len(levels)]
    if topic_filter[0] in "+#":
        tests.append(~F.startswith("topic", F.lit("$")))
    named = [(place, level) for place, level in enumerate(levels) if level != "+"]
    return _all([*tests, *(F.get(parts, F.lit(place)) == level for place, level in named)])


_TRUTHS: dict[type[Expression], Callable[[_Translation, Any], Column]] = {
    And: lambda it, node: _all(_truths(it, node)),
    Or: lambda it, node: _any(_truths(it, node)),
    Not: lambda it, node: ~it.truth(node.operands[0]),
    Comparison: lambda it, node: it.compare(node.operator, *node.operands),
    In: _in,
    Between: _between,
    IsNull: _is_null,
    IsTruth: _is_truth,
    Like: _like,
    TopicMatches: lambda _, node: topic_matches(node.topic_filter),
}
