"""Generated functions give what closures and the walker give, and take nothing from the text."""

import builtins
import json
import tracemalloc
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.where.compile import COMPILER, compile_where
from gateway.where.generated import MAXIMUM_NODES, generate
from gateway.where.language.parser import parse
from gateway.where.rule import compile_rule
from tests.support.table import table
from tests.support.where.history import results_of_a_rule
from tests.support.where.strategies import expressions, messages, rule_expressions
from tests.support.where.vectors import message_of, where_vectors
from tests.support.where.walker import walk

RESULTS = [pytest.param(row, id=row["id"]) for row in where_vectors() if "result" in row]
UPLINK = [pytest.param(row, id=row["id"]) for row in where_vectors("where-vectors-uplink.jsonl")]


@pytest.mark.uncovered
@table("row", RESULTS)
@table("form", ["{}", "NOT ({})"])
@table("folded", [True, False])
def test_vector(row: dict[str, Any], form: str, folded: bool) -> None:
    text = row["expr"]
    if form != "{}":
        if row["id"].startswith("limit"):
            return  # one level more is one too many
        text = text[5:] if text[:5].upper() == "WHERE" else text
    text = form.format(text)
    evaluate = generate(compile_where(text).expression if folded else parse(text), COMPILER)
    expected = row["result"]
    if form != "{}" and expected is not None:
        expected = not expected
    if evaluate is None:
        assert row["id"].startswith("limit")
    else:
        assert evaluate(message_of(row["message"])) is expected


@table("row", UPLINK)
def test_results_of_a_rule(row: dict[str, Any]) -> None:
    where = compile_rule(row["expr"])
    assert where.promote()
    results = []
    for message in map(message_of, row["messages"]):
        results.append(where.evaluate(message))
        where.record(message, results[-1])
    assert results == row["results"]


@pytest.mark.uncovered
@given(expressions(), messages(), st.booleans())
def test_generated_functions_equal_the_walker(text: str, message: Message, folded: bool) -> None:
    evaluate = generate(compile_where(text).expression if folded else parse(text), COMPILER)
    assert evaluate is not None
    assert evaluate(message) is walk(text, message)


@pytest.mark.uncovered
@given(rule_expressions(), st.lists(messages(), max_size=6))
def test_a_promoted_rule_equals_the_words_of_the_language(
    text: str, examples: list[Message]
) -> None:
    where = compile_rule(text)
    results = []
    for place, message in enumerate(examples):
        if place == 2:  # in the middle of its work
            where.promote()
        results.append(where.evaluate(message))
        where.record(message, results[-1])
    assert results == results_of_a_rule(text, examples)


def made(text: str) -> FunctionType:
    where = compile_where(text)
    assert where.promote()
    evaluate = where.evaluate
    assert isinstance(evaluate, FunctionType)
    return evaluate


HOSTILE = "\"'\"\"\n__import__('os').abort()#\\\"'"


def test_nothing_of_the_text_is_source() -> None:
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    literal = "'" + HOSTILE.replace("'", "''") + "'"
    text = (
        f"{quoted} = {literal} AND payload.{quoted} LIKE {literal}"
        f" AND $user.{quoted} IN ({literal})"
        f" AND 123456789 = qos AND payload.abcdefgh[987654321] IS NULL"
    )
    function = made(text)
    code = function.__code__
    texts = {*code.co_names, *code.co_varnames, *map(repr, code.co_consts)}
    assert not any(
        piece in word for piece in ("import", "abcdefgh", "123", "987") for word in texts
    )
    assert all(name[0] in "mvK" for name in code.co_varnames)
    member = {HOSTILE: HOSTILE}
    message = Message("t", json.dumps(member).encode(), user_properties=tuple(member.items()))
    assert function(message) is walk(text, message) is False
    assert made(f"{text} OR $user.{quoted} = {literal}")(message) is True


def test_there_are_no_builtins() -> None:
    function = made("UPPER(payload.a) = 'A' AND LENGTH(topic) > 1")
    assert function.__globals__["__builtins__"] == {}
    assert not set(function.__code__.co_names) & set(dir(builtins))


def test_json_is_parsed_only_where_it_is_needed() -> None:
    function = made("qos = 1 AND payload.a = 1")
    message = Message("t", b'{"a":1}')
    unparsed = message._json
    assert function(message) is False
    assert message._json is unparsed
    other = Message("t", b'{"a":1}', 1)
    assert function(other) is True
    assert other._json == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" AND ".join(["qos"] * 120), Message("t", qos=1)),
        (" OR ".join(["retain"] * 120), Message("t", retain=True)),
        ("+".join(["qos"] * 120) + " = 120", Message("t", qos=1)),
        ("(" * 13 + "qos" + " = 5 OR retain AND qos = 1)" * 13, Message("t", retain=True)),
        ("NOT " * 32 + "qos = 1", Message("t", qos=1)),
        ("CASE WHEN qos THEN " * 32 + "qos" + " END" * 32, Message("t", qos=1)),
    ],
    ids=["and", "or", "sum", "groups", "not", "case"],
)
def test_long_and_deep_expressions(text: str, message: Message) -> None:
    function = made(text)
    assert function(message) is walk(text, message)


def test_larger_trees_stay_as_they_are() -> None:
    where = compile_where(" AND ".join(["qos"] * MAXIMUM_NODES))
    before = where.evaluate
    assert not where.promote()
    assert where.evaluate is before
    rule = compile_rule(" AND ".join(["qos"] * MAXIMUM_NODES))
    assert not rule.promote()
    assert rule.evaluate(Message("t", qos=1)) is True


def test_a_function_has_a_size_that_can_be_borne() -> None:
    text = "payload.temp > 30 AND $user.site = 'A' AND (topic[1] IN ('a', 'b') OR NOT retain)"
    wheres = [compile_where(text) for _ in range(20)]
    tracemalloc.start()
    for where in wheres:
        where.promote()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(wheres) < 12_000  # MAXIMUM_PROMOTED of them are 12 MB
