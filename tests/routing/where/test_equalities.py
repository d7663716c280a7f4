import pytest

from gateway.routing.where.compile import compile_where
from gateway.routing.where.equalities import equalities
from gateway.routing.where.message import Message

MESSAGE = Message(
    "t0/t1",
    b'{"a": {"b": ["deep"]}, "c": "flat", "bare": "json"}',
    qos=2,
    client_id="n7",
    user_properties=(("k", "mine"),),
)


@pytest.mark.parametrize(
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
        ("payload.c = 'x' AND qos > 0 AND topic[0] = 'y'", [("t0", "y"), ("flat", "x")]),
        ("(qos = 1 AND (k = 'x' AND qos < 4)) AND c = 'y'", [(2, 1), ("mine", "x"), ("flat", "y")]),
        ("qos = 1 AND qos = 2", [(2, 1), (2, 2)]),
        ("qos != 1", []),
        ("qos = retain", []),
        ("qos + 1 = 2", []),
        ("UPPER(clientid) = 'X'", []),
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
    asked = equalities(compile_where(text).expression)
    assert [(each.reader()(MESSAGE), each.constant) for each in asked] == found


def test_a_field_has_the_same_key_in_every_expression() -> None:
    fields = ["k", "c", "$user.k", "payload.k", "payload.a.b", "payload[0]", "topic[0]", "topic"]
    keys = [
        [equalities(compile_where(f"{field} = {constant}").expression)[0].field_key]
        for field in fields
        for constant in ("'x'", "7")
    ]
    assert keys[::2] == keys[1::2]
    assert len({key for (key,) in keys}) == len(fields)
