import gc
import inspect
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from gateway.where.language.errors import WhereError
from tests.support.table import table
from tests.support.where.strategies import expressions, messages, token_soup
from tests.support.where.walker import walk


def error_of(text: str) -> WhereError | None:
    try:
        compile_where(text)
    except WhereError as error:
        return error
    return None


@pytest.mark.uncovered
@given(st.text() | token_soup())
def test_any_text_is_accepted_or_has_an_error_within_it(text: str) -> None:
    error = error_of(text)
    if error is not None:
        assert 0 <= error.position <= len(text)
        assert error.kind in ("syntax", "limit")
        assert str(error) == f"$where:{error.position}: {error.message}"


@pytest.mark.uncovered
@given(token_soup())
def test_what_stands_before_an_error_can_be_continued(text: str) -> None:
    error = error_of(text)
    incomplete = error_of(text[: error.position]) if error else None
    assert error is None or incomplete is None or incomplete.position == error.position


@pytest.mark.uncovered
@given(expressions(), messages())
def test_closures_equal_the_walker(text: str, message: Message) -> None:
    assert compile_where(text).evaluate(message) is walk(text, message)


@pytest.mark.uncovered
@given(expressions(), messages())
def test_not_is_true_exactly_if_its_operand_is_false(text: str, message: Message) -> None:
    result = compile_where(text).evaluate(message)
    negated = compile_where(f"NOT ({text})").evaluate(message)
    assert negated is (None if result is None else not result)


@pytest.mark.uncovered
@given(expressions(), messages())
def test_never_true_is_never_true(text: str, message: Message) -> None:
    where = compile_where(text)
    assert not (where.never_true and where.evaluate(message))


def test_a_compiled_expression_keeps_its_text() -> None:
    assert compile_where(" WHERE  qos = 1 ").text == " WHERE  qos = 1 "


@pytest.mark.parametrize(
    ("text", "passes"), [("TRUE", True), ("FALSE", False), ("NULL", False), ("'true'", True)]
)
def test_only_true_passes(text: str, passes: bool) -> None:
    assert compile_where(text).passes(Message("t")) is passes


@table(
    "text",
    [
        "CASE WHEN qos > 0 THEN 'important' ELSE 'normal' END",
        "CASE qos WHEN 0 THEN 'a' WHEN 1 THEN 'b' END",
        "CASE WHEN retain THEN COALESCE(NULL, 'x') END",
        "COALESCE('x', NULL, 'y')",
        "a = NULL",
        "NOT a = NULL",
        "NULL LIKE 'x' AND retain",
        "LENGTH(NULL) = 1 OR a + NULL > 2",
        "-CAST(NULL AS REAL)",
        "retain AND 1 = 2",
        "NOT (retain OR 1 = 1)",
        "'text'",
    ],
)
def test_never_true(text: str) -> None:
    assert compile_where(text).never_true


@table(
    "text",
    [
        "topic",
        "CASE WHEN qos > 0 THEN 'true' ELSE 'normal' END",
        "CASE qos WHEN 0 THEN 'a' ELSE TRUE END",
        "COALESCE(NULL, a)",
        "NULLIF(a, 1)",
        "retain OR 1 = 2",
        "NOT (retain AND 1 = 2)",
        "a IN (NULL, 1)",
        "a IS NULL",
        "a BETWEEN 1 AND NULL OR a IS NOT TRUE",
    ],
)
def test_maybe_true(text: str) -> None:
    assert not compile_where(text).never_true


def test_compiled_expressions_can_be_shared_by_weak_reference() -> None:
    where = compile_where("qos = 1")
    reference = weakref.ref(where)
    assert {where: 1}[where] == 1
    del where
    gc.collect()
    assert reference() is None


DEEPEST = [
    ("(" * 32 + "{}" + ")" * 32, "qos = 1"),
    ("NOT " * 32 + "{}", "qos = 1"),
    ("- " * 32 + "{}", "qos"),
    ("FALSE OR TRUE AND 1 = 0 + 1 * (" * 32 + "{}" + ")" * 32, "qos = 1"),
    ("qos = 5 OR retain AND qos = 1 + 1 * (" * 32 + "{}" + ")" * 32, "qos = 1"),
    ("CASE WHEN {0} THEN " * 32 + "{0}" + " END" * 32, "qos"),
    ("COALESCE(" * 32 + "{}" + ")" * 32, "qos"),
    ("CAST(" * 32 + "{}" + " AS REAL)" * 32, "qos"),
    ("qos IN (" * 32 + "{}" + ")" * 32, "qos"),
]


@table(("form", "inner"), DEEPEST)
def test_the_deepest_expressions_need_a_bounded_stack(form: str, inner: str) -> None:
    text = form.format(inner)
    message = Message("t", qos=1)
    expected = walk(text, message)

    def below(frames: int) -> bool | None:
        return compile_where(text).evaluate(message) if frames == 0 else below(frames - 1)

    room = 500  # of Python's 1,000 frames, for the caller
    assert below(room - len(inspect.stack(0))) is expected


def test_long_chains_are_flat() -> None:
    message = Message("t", qos=1)
    assert compile_where("+".join(["qos"] * 500) + " = 500").passes(message)
    assert compile_where("*".join(["qos"] * 500) + " = 1").passes(message)
    assert compile_where(" AND ".join(["qos"] * 500)).passes(message)
    assert compile_where(" OR ".join(["qos"] * 500)).passes(message)
