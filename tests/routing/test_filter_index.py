import json
from typing import Any

import pytest
from hypothesis import given

from gateway.mqtt.message import UNKNOWN
from gateway.routing.filter_index import FilterIndex
from gateway.routing.where.comparison import ORDERS, compare
from gateway.routing.where.compile import compile_where
from gateway.routing.where.equalities import Equality, equalities
from gateway.routing.where.message import Message
from tests.support.where_strategies import (
    colliding_filters,
    colliding_messages,
    conjunctions,
    messages,
)

CONSTANTS: list[str | int | float] = [
    *("10", "10.0", "010", "+10", "1e1", "1", "0", "-0", "", "x", "nan", "9007199254740993"),
    *("1e400", "1" * 65, " 1", "yes", "\u0661"),
    *(10, 10.0, 1, 1.0, 0, -0.0, 0.1, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e308),
]
VALUES: list[Any] = [*CONSTANTS, True, False, "true", "FALSE", None, [1], {"a": 1}, float(2**63)]


def asked(text: str) -> list[Equality]:
    return equalities(compile_where(text).expression)


def candidates(index: FilterIndex, message: Message) -> list[int]:
    found: list[int] = []
    index.candidates(message, found)
    return sorted(found)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_candidates_are_those_equal_by_the_comparison_rule(value: Any) -> None:
    (field,) = asked("payload.v = 7")
    index = FilterIndex()
    for number, constant in enumerate(CONSTANTS):
        index.add([Equality(field.field, field.field_key, constant)], number)
    message = Message("t", json.dumps({"v": value}).encode())
    equal = [
        number for number, constant in enumerate(CONSTANTS) if compare(ORDERS["="], value, constant)
    ]
    assert candidates(index, message) == equal


@given(conjunctions() | colliding_filters(), messages() | colliding_messages())
def test_an_expression_that_is_true_is_a_candidate(text: str, message: Message) -> None:
    where = compile_where(text)
    wanted = equalities(where.expression)
    if wanted:
        index = FilterIndex()
        index.add(wanted, 1)
        if where.passes(message):
            assert candidates(index, message) == [1]
        index.discard(wanted, 1)
        assert index.fields == 0


def test_it_is_put_where_the_fewest_are() -> None:
    index = FilterIndex()
    for number in range(5):
        index.add(asked(f"payload.device = {number} AND $user.site = 'A'"), number)
    assert index.fields == 2
    site, device = (("site", "A"),), b'{"device": 3}'
    assert candidates(index, Message("t", user_properties=site)) == [0]
    assert candidates(index, Message("t", device, user_properties=site)) == [0, 3]
    assert candidates(index, Message("t", device)) == [3]


def test_a_field_is_forgotten_with_its_last_subscription() -> None:
    index = FilterIndex()
    wanted = [asked(f"{name} = {constant}") for name in "ab" for constant in ("'1'", "1", "'x'")]
    wanted *= 2
    for number, one in enumerate(wanted):
        index.add(one, number)
    assert candidates(index, Message("t", b'{"a": 1}')) == [0, 1, 6, 7]
    for number, one in enumerate(wanted):
        assert index.fields == (2 if number <= 8 else 1)
        index.discard(one, number)
    assert index.fields == 0


def test_fields_outside_the_payload_do_not_parse_it() -> None:
    index = FilterIndex()
    index.add(asked("payload.a = 1 AND $user.k = '1'"), 1)
    message = Message("t", b'{"a": 1}', user_properties=(("k", "1"),))
    assert candidates(index, message) == [1]
    assert message._json is UNKNOWN
