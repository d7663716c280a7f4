import pytest

from gateway.mqtt.message import Message
from gateway.where.compile import compile_where, terms
from tests.support.table import table

MESSAGE = Message(
    "t0/t1",
    b'{"a": {"b": ["deep"]}, "c": "flat", "bare": "json"}',
    qos=2,
    client_id="n7",
    user_properties=(("k", "mine"),),
)


@table(
    ("text", "found"),
    [
        ("clientid = 'x'", [("n7", "x")]),
        ("$QoS = 1", [(2, 1)]),
        ("topic[1] = 'x'", [("t1", "x")]),
        ("$user.k = 'x'", [("mine", "x")]),
        ("bare = 'x'", [("json", "x")]),
        ("k = 'x'", [("mine", "x")]),
        ("payload.a.b[0] = 'x'", [("deep", "x")]),
        ("'x' = payload.c", [("flat", "x")]),
        ("qos = -1.5", [(2, -1.5)]),
        ("qos = 2 + 3", [(2, 5)]),
        ("qos = '5'", [(2, "5")]),
        ("payload.c = 'x' AND qos != 0 AND topic[0] = 'y'", [("t0", "y"), ("flat", "x")]),
        ("(qos = 1 AND (k = 'x' AND qos)) AND c = 'y'", [(2, 1), ("mine", "x"), ("flat", "y")]),
        ("qos = 1 AND qos = 2", [(2, 1), (2, 2)]),
        ("qos != 1", []),
        ("qos = retain", []),
        ("qos + 1 = 2", [(3, 2)]),
        ("UPPER(clientid) = 'X' AND k = 'x'", [("mine", "x")]),
        ("ABS(qos) = 2 AND k = 'x'", [("mine", "x"), (2, 2)]),
        (f"qos{' + 1' * 12} = 14 AND k = 'x'", [("mine", "x")]),
        ("qos = 1 OR qos = 2", []),
        ("NOT qos = 1", []),
        ("qos IN (1)", []),
        ("retain = TRUE", []),
        ("c = 'true'", []),
        ("c = 'False'", []),
        ("c = NULL", []),
        ("1 = 1", []),
    ],
)
def test_equalities(text: str, found: list[tuple[object, object]]) -> None:
    asked = terms(compile_where(text).expression)
    assert [(each.reader()(MESSAGE), each.constant) for each in asked] == found
    assert {each.operator for each in asked} <= {"="}


@table(
    ("text", "found"),
    [
        ("v < 1", ["v < 1"]),
        ("v <= 1.5", ["v <= 1.5"]),
        ("v > -1", ["v > -1"]),
        ("v >= 1", ["v >= 1"]),
        ("1 < v", ["v > 1"]),
        ("1 >= v", ["v <= 1"]),
        ("v BETWEEN 1 AND 2", ["v BETWEEN 1 AND 2"]),
        ("v BETWEEN 2 AND 1", ["v BETWEEN 2 AND 1"]),
        ("a > 1 AND b BETWEEN 3 AND 4 AND topic[0] > 2 AND c = 5", ["c", "b", None, "a"]),
        ("v > 'a'", []),
        ("v > '1'", []),
        ("v < TRUE", []),
        ("v BETWEEN 'a' AND 1", []),
        ("v BETWEEN 0 AND TRUE", []),
        ("v BETWEEN 0 AND qos", []),
        ("v BETWEEN qos AND 1", []),
        ("v > qos", []),
        ("v + 1 BETWEEN 1 AND 2 AND a < 1", [None, "a"]),
        ("ABS(v) > 2 AND a > 1", ["a", None]),
        ("v NOT BETWEEN 1 AND 2", []),
        ("v > 1 OR v < 0", []),
    ],
)
def test_bounds(text: str, found: list[str | None]) -> None:
    shown = []
    for each in terms(compile_where(text).expression):
        name = getattr(each.operand, "name", None)
        high = f" AND {each.high}" if each.operator == "BETWEEN" else ""
        shown.append(f"{name} {each.operator} {each.constant}{high}" if each.whole else name)
    assert shown == found


@pytest.mark.parametrize("text", ["v = 1", "v > 1", "v BETWEEN 1 AND 2"])
def test_a_term_is_whole_if_the_expression_is_nothing_else(text: str) -> None:
    assert [each.whole for each in terms(compile_where(text).expression)] == [True]
    assert [each.whole for each in terms(compile_where(f"{text} AND w").expression)] == [False]


def test_a_field_has_the_same_key_in_every_expression() -> None:
    fields = ["k", "c", "$user.k", "payload.k", "payload.a.b", "payload[0]", "topic[0]", "topic"]
    keys = [
        [terms(compile_where(f"{field} {test}").expression)[0].key]
        for field in fields
        for test in ("= 'x'", "> 7")
    ]
    assert keys[::2] == keys[1::2]
    assert len({key for (key,) in keys}) == len(fields)
