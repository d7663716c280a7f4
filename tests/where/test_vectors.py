from typing import Any

import pytest

from gateway.where.compile import compile_where
from gateway.where.language.errors import WhereError
from gateway.where.rule import compile_rule
from tests.support.table import table
from tests.support.where.vectors import message_of, where_vectors
from tests.support.where.walker import walk

VECTORS = where_vectors()
UPLINK = [pytest.param(row, id=row["id"]) for row in where_vectors("where-vectors-uplink.jsonl")]
RESULTS = [pytest.param(row, id=row["id"]) for row in VECTORS if "result" in row]
ERRORS = [pytest.param(row, id=row["id"]) for row in VECTORS if "error" in row]


def test_the_vectors_are_all_there() -> None:
    assert (len(RESULTS), len(ERRORS), len(UPLINK)) == (529, 124, 23)


@table("row", RESULTS)
def test_result(row: dict[str, Any]) -> None:
    where = compile_where(row["expr"])
    message = message_of(row["message"])
    assert where.evaluate(message) is row["result"]
    assert where.passes(message) is (row["result"] is True)
    assert not (where.never_true and row["result"])


@pytest.mark.uncovered
@table("row", RESULTS)
def test_result_of_the_walker(row: dict[str, Any]) -> None:
    assert walk(row["expr"], message_of(row["message"])) is row["result"]


@table("row", ERRORS)
def test_error(row: dict[str, Any]) -> None:
    with pytest.raises(WhereError) as caught:
        compile_where(row["expr"])
    assert {"position": caught.value.position, "kind": caught.value.kind} == row["error"]


@table("row", UPLINK)
def test_results_of_a_rule(row: dict[str, Any]) -> None:
    where = compile_rule(row["expr"])
    results = []
    for message in map(message_of, row["messages"]):
        results.append(where.evaluate(message))
        where.record(message, results[-1])
    assert results == row["results"]


@pytest.mark.uncovered
@table("row", RESULTS)
def test_a_rule_without_memory_is_a_filter(row: dict[str, Any]) -> None:
    where = compile_rule(row["expr"])
    assert where.slots == 0
    assert where.evaluate(message_of(row["message"])) is row["result"]
