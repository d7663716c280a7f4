"""Converts a tree back to text, for people; parsed again it gives an equal tree."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from gateway.where.language.conversions import Value
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
    Pattern,
    PayloadPath,
    SearchedCase,
    Sign,
    SimpleCase,
    Stateful,
    SystemField,
    TopicLevel,
    TopicMatches,
    UserProperty,
    Wildcard,
)
from gateway.where.language.lexer import TokenKind, ascii_lower, tokenize
from gateway.where.language.parser import BARE_SYSTEM_FIELDS

_ESCAPE: Final = "!"


class _Level(IntEnum):
    """How tightly a form binds; a weaker operand is put in parentheses."""

    EXPRESSION = 0
    AND = 1
    NOT = 2
    PREDICATE = 3
    SUM = 4
    PRODUCT = 5
    UNARY = 6
    PRIMARY = 7


def spell(expression: Expression) -> str:
    """Return `expression` in the words of the language, with folded constants."""
    return _FORMS[type(expression)](expression)[1]


_Spelled = tuple[_Level, str]


def _at(level: _Level, expression: Expression) -> str:
    own, text = _FORMS[type(expression)](expression)
    return text if own >= level else f"({text})"


def spell_value(value: Value) -> str:
    """Return a value as a literal; for an object or array, which has none, its kind."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict | list):
        return "JSON object" if isinstance(value, dict) else "JSON array"
    return repr(value)


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(literal: Literal) -> _Spelled:
    text = spell_value(literal.value)
    return (_Level.UNARY if text.startswith("-") else _Level.PRIMARY), text


def _name(name: str, *kinds: TokenKind) -> str:
    first = tokenize(name)[0]
    if first.kind in kinds and first.text == name:
        return name
    return '"' + name.replace('"', '""') + '"'


def _key(key: str) -> str:
    return _name(key, TokenKind.NAME, TokenKind.KEYWORD)


def _system_field(field: SystemField) -> _Spelled:
    return _Level.PRIMARY, field.name if field.name in BARE_SYSTEM_FIELDS else f"${field.name}"


def _bare_name(field: BareName) -> _Spelled:
    system = ascii_lower(field.name) in BARE_SYSTEM_FIELDS
    return _Level.PRIMARY, f'"{field.name}"' if system else _name(field.name, TokenKind.NAME)


def _payload_path(path: PayloadPath) -> _Spelled:
    steps = (f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path.steps)
    return _Level.PRIMARY, "payload" + "".join(steps)


def _not(negated: Not) -> _Spelled:
    (operand,) = negated.operands
    if isinstance(operand, In | Between | Like | IsNull | IsTruth):
        return _Level.PREDICATE, _tail(operand, "NOT ")
    return _Level.NOT, f"NOT {_at(_Level.NOT, operand)}"


def _tail(test: In | Between | Like | IsNull | IsTruth, negation: str = "") -> str:
    subject, *others = (_at(_Level.SUM, operand) for operand in test.operands)
    if isinstance(test, IsNull):
        return f"{subject} IS {negation}NULL"
    if isinstance(test, IsTruth):
        return f"{subject} IS {negation}{'TRUE' if test.truth else 'FALSE'}"
    if isinstance(test, Between):
        return f"{subject} {negation}BETWEEN {others[0]} AND {others[1]}"
    if isinstance(test, Like):
        return f"{subject} {negation}LIKE {_pattern(test.pattern)}"
    return f"{subject} {negation}IN ({', '.join(map(spell, test.operands[1:]))})"


def _test(test: In | Between | Like | IsNull | IsTruth) -> _Spelled:
    return _Level.PREDICATE, _tail(test)


def _pattern(pattern: Pattern) -> str:
    wildcards = [each.value for each in Wildcard]
    if not any(each in wildcards for each in pattern):
        return _string("".join(map(_wildcard, pattern)))
    escaped = (*wildcards, _ESCAPE)
    texts = (_ESCAPE + each if each in escaped else _wildcard(each) for each in pattern)
    return f"{_string(''.join(texts))} ESCAPE '{_ESCAPE}'"


def _wildcard(element: str | Wildcard) -> str:
    return element.value if isinstance(element, Wildcard) else element


def _joined(level: _Level, operand_level: _Level, word: str) -> Callable[[Expression], _Spelled]:
    def form(expression: Expression) -> _Spelled:
        texts = (_at(operand_level, operand) for operand in expression.operands)
        return level, f" {word} ".join(texts)

    return form


def _comparison(comparison: Comparison) -> _Spelled:
    left, right = (_at(_Level.SUM, operand) for operand in comparison.operands)
    return _Level.PREDICATE, f"{left} {comparison.operator} {right}"


def _arithmetic(chain: Arithmetic) -> _Spelled:
    level = _Level.SUM if chain.operators[0] in ("+", "-") else _Level.PRODUCT
    first, *others = (_at(_Level(level + 1), operand) for operand in chain.operands)
    steps = (f" {sign} {text}" for sign, text in zip(chain.operators, others, strict=True))
    return level, first + "".join(steps)


def _sign(signed: Sign) -> _Spelled:
    text = _at(_Level.UNARY, signed.operands[0])
    if text[0].isdigit():
        text = f"({text})"  # a minus before a number would become a part of it
    separator = " " if text[0] in ("+", "-") else ""
    return _Level.UNARY, signed.sign + separator + text


def _searched_case(case: SearchedCase) -> _Spelled:
    return _Level.PRIMARY, _case("CASE", list(map(spell, case.operands)))


def _simple_case(case: SimpleCase) -> _Spelled:
    subject, *rest = map(spell, case.operands)
    return _Level.PRIMARY, _case(f"CASE {subject}", rest)


def _case(start: str, operands: list[str]) -> str:
    *pairs, otherwise = operands
    whens = zip(pairs[::2], pairs[1::2], strict=True)
    branches = (f"WHEN {condition} THEN {result}" for condition, result in whens)
    return " ".join((start, *branches, f"ELSE {otherwise} END"))


def _cast(cast: Cast) -> _Spelled:
    return _Level.PRIMARY, f"CAST({spell(cast.operands[0])} AS {cast.to.value})"


def _call(call: Call | Stateful) -> _Spelled:
    return _Level.PRIMARY, f"{call.function}({', '.join(map(spell, call.operands))})"


_FORMS: Final[dict[type[Expression], Callable[[Any], _Spelled]]] = {
    Literal: _literal,
    SystemField: _system_field,
    TopicLevel: lambda level: (_Level.PRIMARY, f"topic[{level.index}]"),
    UserProperty: lambda user: (_Level.PRIMARY, f"$user.{_key(user.key)}"),
    BareName: _bare_name,
    PayloadPath: _payload_path,
    Or: _joined(_Level.EXPRESSION, _Level.AND, "OR"),
    And: _joined(_Level.AND, _Level.NOT, "AND"),
    Not: _not,
    IsNull: _test,
    IsTruth: _test,
    In: _test,
    Between: _test,
    Like: _test,
    Comparison: _comparison,
    Arithmetic: _arithmetic,
    Sign: _sign,
    SearchedCase: _searched_case,
    SimpleCase: _simple_case,
    Cast: _cast,
    Call: _call,
    Stateful: _call,
    TopicMatches: lambda test: (
        _Level.PRIMARY,
        f"TOPIC_MATCHES({_string(test.topic_filter)})",
    ),
}
