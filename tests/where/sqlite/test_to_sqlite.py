"""An expression and its translation mean the same, on this machine's SQLite."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from gateway.where.language.parser import parse
from gateway.where.language.spelling import spell
from gateway.where.rule import compile_rule
from gateway.where.sqlite.to_sqlite import to_sqlite
from tests.support.table import table
from tests.support.where.sqlite import Recorded, evaluated
from tests.support.where.strategies import expressions, messages
from tests.support.where.vectors import message_of, where_vectors

RESULTS = [pytest.param(row, id=row["id"]) for row in where_vectors() if "result" in row]
RANDOM_EXAMPLES = {"dev": 40, "ci": 120, "deep": 2_000, "fuzz": 40_000}
RANDOM_EXPRESSIONS = 5
"""Those of an example, which meet the same messages: 600 in all in `ci`. To draw takes longer
than to compare."""


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with Recorded() as recorded:
        yield recorded


@table("row", RESULTS)
@table("folded", [True, False])
@pytest.mark.uncovered
def test_vector(row: dict[str, Any], folded: bool) -> None:
    text, message = row["expr"], message_of(row["message"])
    where = to_sqlite(compile_where(text).expression if folded else parse(text))
    assert where.residual is None
    with Recorded() as recorded:
        recorded.record(message)
        assert recorded.results(where) == [row["result"]]


@pytest.mark.uncovered
@pytest.mark.slow
def test_random_expressions() -> None:
    with Recorded() as recorded:

        @settings(max_examples=RANDOM_EXAMPLES[os.environ.get("HYPOTHESIS_PROFILE", "dev")])
        @given(
            st.tuples(*[expressions()] * RANDOM_EXPRESSIONS),
            st.lists(messages(), min_size=1, max_size=2),
            st.booleans(),
        )
        def holds(texts: tuple[str, ...], examples: list[Message], folded: bool) -> None:
            recorded.record(*examples)
            for text in texts:
                tree = compile_where(text).expression if folded else parse(text)
                where = to_sqlite(tree)
                assert where.residual is None
                expected = [evaluated(tree, message) for message in examples]
                assert recorded.results(where) == expected, (where, text)
                assert recorded.kept(where) == expected.count(True)

        holds()


OPERANDS = [
    *("NULL", "TRUE", "5", "5.0", "'5'", "'true'", "qos", "retain", "username", "payload.a", "a"),
    *("COALESCE(username, retain)", "COALESCE(username, qos)", "NULLIF(retain, qos)"),
    *("COALESCE(payload.a, qos)", "CASE WHEN a THEN qos WHEN payload.a THEN retain END"),
    *(
        "CASE qos WHEN 1 THEN 2.5 ELSE qos END",
        "-(NULL)",
        "CAST(a AS REAL)",
        "ABS(qos)",
        "qos - (NULL)",
    ),
]


@pytest.mark.uncovered
@pytest.mark.parametrize("left", OPERANDS)
def test_every_two_types_compare_alike(left: str, recorded: Recorded) -> None:
    payloads = [f'{{"a":{a}}}' for a in ("5", "5.0", '"5"', "true", "[1]", "null", '"TRUE"')]
    examples = [
        Message("t", payload.encode(), qos, bool(qos), username=username)
        for payload in payloads
        for qos in (0, 1)
        for username in (None, "true", "1")
    ]
    recorded.record(*examples)
    for right in OPERANDS:
        for operator in ("=", "<", ">="):
            tree = parse(f"{left} {operator} {right}")
            expected = [evaluated(tree, message) for message in examples]
            assert recorded.results(to_sqlite(tree)) == expected, right


def many(count: int, text: str, separator: str) -> str:
    return separator.join(text.format(2 * place, 2 * place + 1) for place in range(count))


@table(
    ("text", "residual"),
    [
        ("CHANGED(a)", "CHANGED(a)"),
        ("qos = 1 AND CHANGED(a)", "CHANGED(a)"),
        ("CHANGED(a) AND (qos = 1 AND EVERY(5))", "CHANGED(a) AND EVERY(5)"),
        ("qos = 1 OR CHANGED(a)", "qos = 1 OR CHANGED(a)"),
        ("qos = 1 AND (a = 1 OR b > 2)", None),
        (many(66, "a{}", " + "), many(66, "a{}", " + ")),  # more levels than are prepared
        (many(201, "a{}*b{}", " OR "), many(201, "a{} * b{}", " OR ")),  # more steps
    ],
)
def test_what_sqlite_cannot_work_out(text: str, residual: str | None) -> None:
    where = to_sqlite(compile_rule(text).expression)
    assert (None if where.residual is None else spell(where.residual)) == residual


def test_the_condition_keeps_what_the_residual_decides(recorded: Recorded) -> None:
    tree = parse("qos = 1 AND CHANGED(payload.a) AND topic LIKE 's/%'", stateful=True)
    where = to_sqlite(tree)
    recorded.record(*(Message(topic, qos=qos) for topic in ("s/1", "t/1") for qos in (0, 1)))
    assert recorded.results(where) == [False, True, False, False]
    assert recorded.kept(where) == 1


def test_a_condition_of_nothing_keeps_everything(recorded: Recorded) -> None:
    recorded.record(Message("a"), Message("b"))
    assert recorded.kept(to_sqlite(compile_rule("EVERY(5)").expression)) == 2


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "text",
    [
        many(255, "a{} = b{}", " OR "),
        many(256, "1", " + a + "),
        "CONCAT(" + many(300, "topic", ", ") + ") = 'a'",
        "COALESCE(" + many(300, "x{}", ", ") + ", qos) = 1",
        "CASE qos " + many(200, "WHEN {} THEN {}", " ") + " END = 3",
        "(" * 31 + "a" + " OR qos = 1)" * 31,
        "NOT " * 32 + "qos = 1",
        "CASE WHEN " * 32 + "qos = 1" + " THEN a ELSE TRUE END" * 32,
        "(a + 1) % " * 30 + "7 = 0",
    ],
    ids=lambda text: text[:20],
)
def test_long_and_deep_expressions_either_fit_or_are_left(text: str, recorded: Recorded) -> None:
    message = Message("a/b", b'{"a":1,"x7":1}', 1)
    where = to_sqlite(parse(text))
    recorded.record(message)
    expected = evaluated(parse(text), message) if where.residual is None else True
    assert recorded.results(where) == [expected]


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("LENGTH(payload)", b"a\0b"),
        ("payload LIKE 'a_b'", b"a\0b"),
        ("payload LIKE '_!_%' ESCAPE '!'", b"\0_b"),
        ("SUBSTR(payload, 2, 2) = SUBSTR(payload, -2)", b"a\0b"),
        ("SUBSTR(payload, 2, payload.a) IS NULL", b"a\0b"),
        ("CONCAT(payload, 'c') LIKE '%bc'", b"a\0b"),
        ("INSTR(payload, 'b') = 3", b"a\0b"),
        ("LENGTH(CONCAT(payload, payload)) IS NULL", b"a\0" * 20_000),
        ("LENGTH(CONCAT(payload, payload)) IS NULL", b"ab" * 20_000),
        ("UPPER(payload) LIKE '%[*]?'", b"x[*]?"),
    ],
)
def test_texts_that_sqlite_reads_only_in_part(
    text: str, payload: bytes, recorded: Recorded
) -> None:
    recorded.record(Message("t", payload))
    assert recorded.results(to_sqlite(parse(text))) == [True]


def test_constants_are_bound_and_never_text() -> None:
    where = to_sqlite(parse("payload.\"a'b\" = 'x''y' AND $user.\"k\"\"\" LIKE '%''_'"))
    assert not {"'b", "x'y", 'k"'} & set(where.condition.split())
    assert {"x'y", 'k"', "%'_"} <= set(where.parameters.values())
