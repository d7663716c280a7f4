"""Translates a `$where` expression to a condition of SQLite over recorded messages.

See where-language 16. The columns are those of the gateway's history: `topic`, `payload` (BLOB),
`qos`, `retain` (0 or 1), `client_id`, `username`, `content_type`, `response_topic`,
`correlation_data` (BLOB), `message_expiry`, `payload_format`, `time` (`$received_at`) and
`user_properties` (a JSON array of pairs). `gateway.storage.history.reader` registers the `where_`
functions that the condition calls. SQLite 3.35 is needed, without its ICU extension, with which
`upper` and `lower` would change more than ASCII.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

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
    conjunction,
    conjuncts,
)
from gateway.where.sqlite.calculations import call, cast, like, negate, operate
from gateway.where.sqlite.operand import (
    NULL,
    Kind,
    Operand,
    Parameter,
    Parameters,
    Steps,
    UntranslatableError,
    compare,
    grouped,
    of_one_kind,
    to_boolean,
    to_number,
    to_string,
)

_COLUMNS: Final = {
    "topic": Operand("topic", Kind.STRING),
    "qos": Operand("qos", Kind.INTEGER),
    "retain": Operand("retain", Kind.BOOLEAN),
    "clientid": Operand("client_id", Kind.STRING),
    "username": Operand("username", Kind.STRING),
    "payload": Operand("where_text(payload)", Kind.STRING, depth=1),
    "content_type": Operand("content_type", Kind.STRING),
    "response_topic": Operand("response_topic", Kind.STRING),
    "correlation_data": Operand("where_text(correlation_data)", Kind.STRING, depth=1),
    "payload_size": Operand("length(payload)", Kind.INTEGER, depth=1),
    "payload_format": Operand("payload_format", Kind.INTEGER),
    "message_expiry": Operand("message_expiry", Kind.INTEGER),
    "received_at": Operand("time", Kind.INTEGER),
}


def _system_field(field: SystemField, _: Steps) -> Operand:
    return _COLUMNS[field.name]


def _topic_level(field: TopicLevel, steps: Steps) -> Operand:
    return steps.make(f"where_topic_level(topic, {field.index})", Kind.STRING)


def _user_property(field: UserProperty, steps: Steps) -> Operand:
    key = steps.parameter(field.key)
    return steps.make(f"where_user(user_properties, {key})", Kind.STRING)


def _bare_name(field: BareName, steps: Steps) -> Operand:
    name = steps.parameter(field.name)
    return steps.make(f"where_bare(user_properties, payload, {name})", Kind.ANY)


def _payload_path(field: PayloadPath, steps: Steps) -> Operand:
    path = steps.parameter(json.dumps(field.steps))
    return steps.make(f"where_payload(payload, {path})", Kind.ANY)


def _topic_matches(test: TopicMatches, steps: Steps) -> Operand:
    topic_filter = steps.parameter(test.topic_filter)
    if "+" in test.topic_filter or "#" in test.topic_filter:
        return steps.make(f"where_topic_matches(topic, {topic_filter})", Kind.BOOLEAN)
    return steps.make(f"topic = {topic_filter}", Kind.BOOLEAN)


FIELDS: Final[dict[type[Expression], Callable[[Any, Steps], Operand]]] = {
    SystemField: _system_field,
    TopicLevel: _topic_level,
    UserProperty: _user_property,
    BareName: _bare_name,
    PayloadPath: _payload_path,
    TopicMatches: _topic_matches,
}
"""How each field is translated."""


@dataclass(frozen=True, slots=True)
class SqliteFilter:
    """`condition` is for a WHERE clause, with `parameters` bound by their names.

    Its value, 1, 0 or NULL, is that of the expression if `residual` is None. Otherwise the
    expression means `condition AND residual`: SQLite cannot evaluate the residual, and the caller
    evaluates it for the rows that pass the condition.
    """

    condition: str
    parameters: Mapping[str, Parameter]
    residual: Expression | None


def to_sqlite(expression: Expression) -> SqliteFilter:
    """Translate a tree, preferably with folded constants.

    The residual has functions with memory, and operands of AND that exceed SQLite's limits
    (`operand.LEVELS_MAX`, `STEPS_MAX`).
    """
    parameters = Parameters()
    conditions: list[str] = []
    residual: list[Expression] = []
    for operand in conjuncts(expression):
        steps = Steps(parameters)
        try:
            conditions.append(steps.select(to_boolean(_translate(operand, steps), steps)))
        except UntranslatableError:
            residual.append(operand)
    condition = " AND ".join(conditions) or "1"
    return SqliteFilter(condition, parameters.values, conjunction(residual))


def _translate(expression: Expression, steps: Steps) -> Operand:
    return _FORMS[type(expression)](expression, steps)


def _translated(expression: Expression, steps: Steps) -> list[Operand]:
    return [_translate(operand, steps) for operand in expression.operands]


def _literal(literal: Literal, steps: Steps) -> Operand:
    value = literal.value
    if isinstance(value, bool):
        return Operand("1" if value else "0", Kind.BOOLEAN)
    for python_type, kind in ((int, Kind.INTEGER), (float, Kind.REAL), (str, Kind.STRING)):
        if isinstance(value, python_type):
            return Operand(steps.parameter(value), kind)
    return NULL


def _not(expression: Not, steps: Steps) -> Operand:
    truth = _truths(expression, steps)[0]
    return steps.make(f"NOT {truth.sql}", Kind.BOOLEAN, truth)


def _truths(expression: Expression, steps: Steps) -> list[Operand]:
    return [to_boolean(operand, steps) for operand in _translated(expression, steps)]


def _joined(word: str, operands: list[Operand], steps: Steps) -> Operand:
    sqls = [operand.sql for operand in operands]
    sql = grouped(sqls, lambda group: f"({f' {word} '.join(group)})")
    return steps.make(sql, Kind.BOOLEAN, *operands)


def _comparison(expression: Comparison, steps: Steps) -> Operand:
    left, right = _translated(expression, steps)
    return compare(expression.operator, left, right, steps)


def _in(expression: In, steps: Steps) -> Operand:
    value, *elements = map(steps.once, _translated(expression, steps))
    if value.kinds == Kind.STRING and all(each.kinds == Kind.STRING for each in elements):
        sql = f"{value.sql} IN ({', '.join(each.sql for each in elements)})"
        return steps.make(sql, Kind.BOOLEAN, value, *elements)
    return _joined("OR", [compare("=", value, each, steps) for each in elements], steps)


def _between(expression: Between, steps: Steps) -> Operand:
    value, low, high = map(steps.once, _translated(expression, steps))
    bounds = [compare(">=", value, low, steps), compare("<=", value, high, steps)]
    return _joined("AND", bounds, steps)


def _is_null(expression: IsNull, steps: Steps) -> Operand:
    (operand,) = _translated(expression, steps)
    return steps.make(f"{operand.sql} IS NULL", Kind.BOOLEAN, operand)


def _is_truth(expression: IsTruth, steps: Steps) -> Operand:
    (truth,) = _truths(expression, steps)
    return steps.make(f"{truth.sql} IS {int(expression.truth)}", Kind.BOOLEAN, truth)


def _like(expression: Like, steps: Steps) -> Operand:
    text = to_string(_translate(expression.operands[0], steps), steps)
    return NULL if text is NULL else like(text, expression.pattern, steps)


def _arithmetic(expression: Arithmetic, steps: Steps) -> Operand:
    result, *others = (to_number(each, steps) for each in _translated(expression, steps))
    for operator, other in zip(expression.operators, others, strict=True):
        result = operate(operator, result, other, steps)
    return result


def _sign(expression: Sign, steps: Steps) -> Operand:
    number = to_number(_translate(expression.operands[0], steps), steps)
    return number if expression.sign == "+" else negate(number, steps)


def _searched_case(expression: SearchedCase, steps: Steps) -> Operand:
    *pairs, otherwise = _translated(expression, steps)
    conditions = [to_boolean(condition, steps) for condition in pairs[::2]]
    return _case(conditions, [*pairs[1::2], otherwise], steps)


def _simple_case(expression: SimpleCase, steps: Steps) -> Operand:
    subject, *pairs, otherwise = _translated(expression, steps)
    subject = steps.once(subject)
    conditions = [compare("=", subject, value, steps) for value in pairs[::2]]
    return _case(conditions, [*pairs[1::2], otherwise], steps)


def _case(conditions: list[Operand], results: list[Operand], steps: Steps) -> Operand:
    values, kinds = of_one_kind(results, steps)
    branches = zip(conditions, values, strict=False)
    whens = " ".join(f"WHEN {each.sql} THEN {value.sql}" for each, value in branches)
    return steps.make(f"CASE {whens} ELSE {values[-1].sql} END", kinds, *conditions, *values)


def _cast(expression: Cast, steps: Steps) -> Operand:
    return cast(expression.to, _translate(expression.operands[0], steps), steps)


def _call(expression: Call, steps: Steps) -> Operand:
    return call(expression.function, _translated(expression, steps), steps)


def _stateful(_: Stateful, __: Steps) -> Operand:
    raise UntranslatableError


_FORMS: Final[dict[type[Expression], Callable[[Any, Steps], Operand]]] = {
    **FIELDS,
    Literal: _literal,
    Not: _not,
    And: lambda node, steps: _joined("AND", _truths(node, steps), steps),
    Or: lambda node, steps: _joined("OR", _truths(node, steps), steps),
    Comparison: _comparison,
    In: _in,
    Between: _between,
    IsNull: _is_null,
    IsTruth: _is_truth,
    Like: _like,
    Arithmetic: _arithmetic,
    Sign: _sign,
    SearchedCase: _searched_case,
    SimpleCase: _simple_case,
    Cast: _cast,
    Call: _call,
    Stateful: _stateful,
}
