"""Both tiers count the same work, and give up an evaluation that would cost more."""

import pytest

from gateway.mqtt.message import UNBOUNDED, Message, OverBudgetError
from gateway.where.compile import compile_where
from gateway.where.rule import compile_rule
from tests.support.table import table

LONG = "é" * 30_000
PAYLOAD = f'{{"a":"{LONG}","b":"{LONG}","n":5}}'


def message_of_long_texts() -> Message:
    return Message(
        "t",
        PAYLOAD.encode(),
        correlation_data=LONG.encode(),
        user_properties=(("long", LONG), ("short", "x")),
    )


def spent(text: str, message: Message, *, generated: bool) -> int:
    where = compile_where(text)
    if generated:
        assert where.promote()
    message.work_left = UNBOUNDED
    where.evaluate(message)
    return UNBOUNDED - message.work_left


DEAR = {
    "UPPER(payload) = 'x'": 8 * len(PAYLOAD),
    "LOWER(long) = 'x'": 8 * 30_000,
    "TRIM(long) = 'x'": 2 * 30_000,
    "SUBSTR(long, 2) = 'x'": 2 * 30_000,
    "SUBSTR(long, 2, 5) = 'x'": 0,
    "INSTR(long, short) = 1": 30_000,
    "INSTR(short, long) = 1": 1,
    "CONCAT(short, long) = 'x'": 2 * 30_001,
    "NULLIF(payload.a, payload.b) IS NULL": 30_000,
    "payload.a = payload.b": 30_000,
    "payload.a < long": 30_000,
    "payload.a = short": 0,
    "payload.a = payload.n": 0,
    "payload.a IN (payload.b, 'x')": 30_000,
    "payload.a IN ('x', short, payload.n)": 0,
    "payload.a BETWEEN long AND payload.b": 2 * 30_000,
    "CASE payload.a WHEN short THEN 1 WHEN payload.b THEN TRUE END": 30_000,
    "long LIKE '%abc%'": 3 * 30_000,
    "long LIKE '%a_c%'": 100 * 30_000,
    "long LIKE 'abc%'": 0,
    "short LIKE '%a_c%'": 0,
    "payload.n LIKE '%_%5'": 0,
    "payload.nothing LIKE '%_%5'": 0,
    "correlation_data = 'x' OR correlation_data = 'y'": 0,
    "long IN ('x', 'y')": 0,
}


@table(("text", "work"), DEAR.items())
@pytest.mark.parametrize("generated", [False, True])
def test_what_texts_add_is_counted(text: str, work: int, generated: bool) -> None:
    counted = spent(text, message_of_long_texts(), generated=generated)
    assert counted == (work if work > 1_000 else 0)


@table("text", [text for text, work in DEAR.items() if work > 1_000])
@pytest.mark.parametrize("generated", [False, True])
def test_an_evaluation_that_would_cost_more_is_given_up(text: str, generated: bool) -> None:
    where = compile_where(text)
    if generated:
        assert where.promote()
    message = message_of_long_texts()
    message.work_left = DEAR[text] - 1
    with pytest.raises(OverBudgetError):
        where.evaluate(message)
    message = message_of_long_texts()
    message.work_left = DEAR[text]
    where.evaluate(message)
    assert message.work_left == 0


def test_a_value_that_several_ask_for_is_counted_once() -> None:
    message = Message("t", LONG.encode())
    held = [compile_where(f"UPPER(payload) = '{each}'") for each in "abc"]
    message.work_left = UNBOUNDED
    for where in held:
        where.evaluate(message)
    assert UNBOUNDED - message.work_left == 8 * 30_000


def test_long_correlation_data_is_decoded_once() -> None:
    message = Message("t", correlation_data=b"\xff" * 2_000)
    assert message.correlation_text() is message.correlation_text() is None
    message = Message("t", correlation_data=b"x" * 2_000)
    first = message.correlation_text()
    assert first == "x" * 2_000
    assert message.correlation_text() is first


def test_parts_are_forgotten_but_for_what_is_kept() -> None:
    message = Message("t")
    message.part_values = {"a": 1, 2: 3}
    message.forget_parts_but(int)
    assert message.part_values == {2: 3}


def test_a_rule_remembers_nothing_of_what_it_has_no_room_for() -> None:
    rule = compile_rule("CHANGED(UPPER(payload)) OR CHANGED(qos)")
    small, large = Message("t", b"small"), Message("t", LONG.encode())
    rule.record(small, rule.evaluate(small))
    large.work_left = 1_000
    with pytest.raises(OverBudgetError):
        rule.evaluate(large)
    assert rule.record(large, None) is False
    assert rule.evaluate(small) is False
    assert rule.evaluate(Message("t", b"other")) is True


def test_what_changed_is_compared_as_far_as_there_is_room() -> None:
    rule = compile_rule("CHANGED(payload)")
    one, same = Message("t", LONG.encode()), Message("t", LONG.encode())
    rule.record(one, rule.evaluate(one))
    same.work_left = 29_999
    with pytest.raises(OverBudgetError):
        rule.evaluate(same)
    same.work_left = 30_000
    assert rule.evaluate(same) is False


def test_between_two_values_that_are_no_constants() -> None:
    where = compile_where("payload.a BETWEEN payload.b AND payload.c")
    results = {
        b'{"a":1,"b":2,"c":3}': False,
        b'{"a":2,"b":1,"c":3}': True,
        b'{"a":4,"b":1,"c":3}': False,
        b'{"a":4,"c":3}': False,
        b'{"a":2,"c":3}': None,
    }
    assert {text: where.evaluate(Message("t", text)) for text in results} == results
