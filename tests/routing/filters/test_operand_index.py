import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.routing.filters.filter_index import (
    Held,
    IndexEntry,
    OperandIndex,
    count,
    excluding,
    gather,
    including,
)
from gateway.where.compile import Term, compile_where
from gateway.where.language.conversions import ORDERS, compare
from gateway.where.language.expression import PayloadPath
from tests.support.table import table


@given(st.lists(st.integers(0, 5)))
def test_it_holds_what_a_set_does(numbers: list[int]) -> None:
    held: Held[int] = None
    expected: set[int] = set()
    for number in numbers:
        change = excluding if number in expected else including
        held = change(held, number)
        expected ^= {number}
        found: list[int] = []
        gather(held, found)
        assert sorted(found) == sorted(expected)
        assert count(held) == len(expected)
        assert isinstance(held, set) == (len(expected) > 1)


NUMBERS: list[int | float] = [
    *(10, 10.0, 1, 1.0, 0, -0.0, 0.1, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e308)
]
CONSTANTS: list[str | int | float] = [
    *("10", "10.0", "010", "+10", "1e1", "1", "0", "-0", "", "x", "nan", "9007199254740993"),
    *("1e400", "1" * 65, " 1", "yes", "\u0661"),
    *NUMBERS,
]
VALUES: list[Any] = [*CONSTANTS, True, False, "true", "FALSE", None, [1], {"a": 1}, float(2**63)]
FIELD = PayloadPath(("v",))
SOME = compile_where("v")


def terms() -> list[Term]:
    equal = [Term(FIELD, "=", constant) for constant in CONSTANTS]
    bounds = [Term(FIELD, order, each) for order in ("<", "<=", ">", ">=") for each in NUMBERS]
    both = [Term(FIELD, "BETWEEN", low, high) for low in NUMBERS for high in NUMBERS]
    return equal + bounds + both


def is_true(term: Term, value: Any) -> bool:
    if term.operator == "BETWEEN":
        above = compare(ORDERS[">="], value, term.constant)
        return bool(above and compare(ORDERS["<="], value, term.high))
    return bool(compare(ORDERS[term.operator], value, term.constant))


def found(index: OperandIndex, value: Any) -> list[Term | None]:
    entries: list[IndexEntry] = []
    operand = index.read(Message("t", json.dumps({"v": value}).encode()))
    for table_of_operator in index.tables.values():
        table_of_operator.find(operand, entries)
    return [entry.term for entry in entries]


@table("value", VALUES, ids=repr)
def test_what_is_found_is_true_by_the_comparison_rule(value: Any) -> None:
    every = terms()
    index = OperandIndex(every[0].reader())
    for term in every:
        index.add(term, IndexEntry(SOME, term))
    expected = [term for term in every if is_true(term, value)]
    assert sorted(map(str, found(index, value))) == sorted(map(str, expected))


@pytest.mark.uncovered
@given(st.lists(st.sampled_from(range(len(terms())))), st.sampled_from(VALUES), st.randoms())
def test_nothing_is_left_of_what_is_discarded(places: list[int], value: Any, random: Any) -> None:
    every = terms()
    index = OperandIndex(every[0].reader())
    entries = [IndexEntry(SOME, every[place]) for place in places]
    for entry in entries:
        assert entry.term is not None
        index.add(entry.term, entry)
    random.shuffle(entries)
    while entries:
        gone = entries.pop()
        assert gone.term is not None
        index.discard(gone.term, gone)
        left = [entry.term for entry in entries if entry.term and is_true(entry.term, value)]
        assert sorted(map(str, found(index, value))) == sorted(map(str, left))
        assert bool(index) == bool(entries)
