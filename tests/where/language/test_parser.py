import pytest

from gateway.where.language.errors import WhereError
from gateway.where.language.expression import (
    And,
    Arithmetic,
    BareName,
    Call,
    Cast,
    CastType,
    Expression,
    In,
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
)
from gateway.where.language.parser import parse
from tests.support.table import table

DEEPEST = "(" * 31


@table(
    ("text", "tree"),
    [
        (
            "a OR b AND NOT c",
            Or(
                operands=(
                    BareName("a"),
                    And(operands=(BareName("b"), Not(operands=(BareName("c"),)))),
                )
            ),
        ),
        (
            "1 - 2 * a",
            Arithmetic(
                ("-",),
                operands=(Literal(1), Arithmetic(("*",), operands=(Literal(2), BareName("a")))),
            ),
        ),
        (
            "a - b + c",
            Arithmetic(("-", "+"), operands=(BareName("a"), BareName("b"), BareName("c"))),
        ),
        ("a NOT IN (1)", Not(operands=(In(operands=(BareName("a"), Literal(1))),))),
        ("-9223372036854775808", Literal(-(2**63))),
        ("- 9223372036854775809", Literal(-(2.0**63))),
        ("9223372036854775808", Literal(2.0**63)),
        ("-(5)", Sign("-", operands=(Literal(5),))),
        ("- -5", Sign("-", operands=(Literal(-5),))),
        ("+5", Sign("+", operands=(Literal(5),))),
        ("0007.0", Literal(7.0)),
        ("payload", SystemField("payload")),
        ("$PAYLOAD . a [ 007 ] . END", PayloadPath(("a", 7, "END"))),
        ("payload.`a``b`", PayloadPath(("a`b",))),
        ("payload[2147483647]", PayloadPath((2147483647,))),
        ("Topic", SystemField("topic")),
        ("$topic[0]", TopicLevel(0)),
        ("topic [000000000000000000003]", TopicLevel(3)),
        ("$USER.Null", UserProperty("Null")),
        ('"qos"', BareName("qos")),
        ("LENGTH", BareName("LENGTH")),
        ("payload_size", BareName("payload_size")),
        ("$payload_size", SystemField("payload_size")),
        ("length (a)", Call("LENGTH", operands=(BareName("a"),))),
        ("cast(a as Varchar)", Cast(CastType.STRING, operands=(BareName("a"),))),
        ("Topic_Matches('a/#')", TopicMatches("a/#")),
        (
            "CASE WHEN a THEN b END",
            SearchedCase(operands=(BareName("a"), BareName("b"), Literal(None))),
        ),
        (
            "CASE a WHEN 1 THEN b ELSE 2 END",
            SimpleCase(operands=(BareName("a"), Literal(1), BareName("b"), Literal(2))),
        ),
    ],
)
def test_tree(text: str, tree: Expression) -> None:
    assert repr(parse(text)) == repr(tree)


@table(
    ("text", "position", "message"),
    [
        ("k1 = ", 5, "expected an operand, found the end of the expression"),
        ("a b", 2, "expected an operator or the end of the expression, found 'b'"),
        (
            "a.b = 1",
            1,
            "only payload, topic and $user lead to a path; a name with a dot needs quotes",
        ),
        (
            "(a[0])",
            2,
            "only payload, topic and $user lead to a path; a name with a dot needs quotes",
        ),
        ("LENGTH(1, 2)", 0, "LENGTH takes 1 argument, not 2"),
        ("a = substr(1)", 4, "substr takes 2 or 3 arguments, not 1"),
        ("CONCAT()", 0, "CONCAT takes 1 or more arguments, not 0"),
        ("NULLIF(1)", 0, "NULLIF takes 2 arguments, not 1"),
        ("nope(", 0, "there is no function 'nope'"),
        ("topic(1)", 0, "there is no function 'topic'"),
        ("$topic(1)", 6, "expected an operator or the end of the expression, found '('"),
        ("every(5)", 0, "EVERY needs the memory of an uplink rule and is not available here"),
        ("x IN 5", 5, "expected '(', found '5'"),
        ("$\u212aind", 0, "there is no field '$\u212aind'"),
        ("payload[12345678901]", 8, "an index is a whole number from 0 to 2147483647"),
        ("payload[2147483648]", 8, "an index is a whole number from 0 to 2147483647"),
        ("payload[1e3]", 8, "an index is a whole number from 0 to 2147483647"),
        ("payload.$a", 8, "expected a name, found '$a'"),
        (
            'CAST(a AS "INTEGER")',
            10,
            "expected INTEGER, REAL, STRING or BOOLEAN, found '\"INTEGER\"'",
        ),
        ("CAST(a AS CASE)", 10, "expected INTEGER, REAL, STRING or BOOLEAN, found 'CASE'"),
        ("a LIKE 'x!' ESCAPE '!'", 7, "'!' escapes only %, _ and itself"),
        ("a LIKE 'x!' ESCAPE '!!'", 19, "ESCAPE takes exactly one character, not 2"),
        ("1e999", 0, "this number is outside the range of REAL"),
        ("- 1e999", 2, "this number is outside the range of REAL"),
        ("1" * 310, 0, "this number is outside the range of REAL"),
        (
            "TOPIC_MATCHES('$share/g/a')",
            14,
            "TOPIC_MATCHES takes no shared subscription's topic filter",
        ),
        ("TOPIC_MATCHES('a\0')", 14, "topic filter 'a\\x00' holds U+0000"),
        ("a = 1 NOT IN (1)", 6, "expected an operator or the end of the expression, found 'NOT'"),
        ("a NOT", 5, "expected IN, BETWEEN or LIKE, found the end of the expression"),
        ("payload.a(1)", 9, "expected an operator or the end of the expression, found '('"),
        ("foo ;", 4, "unexpected character ';'"),
        ("a = 'x", 4, "no closing ' for this one"),
    ],
)
def test_syntax_error(text: str, position: int, message: str) -> None:
    with pytest.raises(WhereError) as caught:
        parse(text)
    assert (caught.value.position, caught.value.kind) == (position, "syntax")
    assert caught.value.message == message


@table(
    ("text", "position"),
    [
        ("é" * 2048 + "a", 0),
        ("\ud800" * 1366, 0),
        (DEEPEST + "-a", None),
        (DEEPEST + "-5", None),
        (DEEPEST + "(-5", 32),
        (DEEPEST + "-(a", 32),
        (DEEPEST + "(CASE WHEN", 32),
        (DEEPEST + "(NOT a", 32),
        (DEEPEST + "(a IN (1", 37),
        (DEEPEST + "(CAST(a", 36),
        (DEEPEST + "(TOPIC_MATCHES('a'", 45),
        (DEEPEST + "(nope(", None),
        ("a AND " * 512 + "b", 3072),
        ("a LIKE '" + "x" * 257 + "' ESCAPE 5", 7),
    ],
)
def test_limit(text: str, position: int | None) -> None:
    with pytest.raises(WhereError) as caught:
        parse(text)
    assert (caught.value.kind == "limit") is (position is not None)
    assert position in (None, caught.value.position)


@table(
    "text",
    [
        "é" * 2048,
        "'" + "x" * 4094 + "'",
        "a AND " * 511 + "b",
        "a LIKE '" + "x" * 256 + "'",
        "a LIKE '" + "''" * 256 + "'",
        DEEPEST + "-5" + ")" * 31,
        " OR ".join(["(a)"] * 200),
    ],
)
def test_at_the_limit(text: str) -> None:
    parse(text)
