import inspect
import json
from typing import Any

import pytest
from hypothesis import given

from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from gateway.where.evaluation import stateful as rule_memory
from gateway.where.language.errors import WhereError
from gateway.where.rule import RuleWhere, compile_rule
from tests.support.table import table
from tests.support.where.history import results_of_a_rule
from tests.support.where.strategies import histories, messages, rule_expressions


def reading(value: Any, topic: str = "s/1", time: int | None = 1_000_000) -> Message:
    return Message(topic, json.dumps({"t": value}).encode(), received_at=time)


def run(where: RuleWhere, sequence: list[Message]) -> list[bool | None]:
    results = []
    for message in sequence:
        results.append(where.evaluate(message))
        where.record(message, results[-1])
    return results


@pytest.mark.uncovered
@given(rule_expressions(), histories())
def test_the_memory_equals_the_whole_history(text: str, history: list[Message]) -> None:
    assert run(compile_rule(text), history) == results_of_a_rule(text, history)


@pytest.mark.uncovered
@given(rule_expressions(), messages())
def test_an_evaluation_leaves_the_memory_alone(text: str, message: Message) -> None:
    where = compile_rule(text)
    assert where.evaluate(message) is where.evaluate(message)
    assert len(where.memory) == 0


@pytest.mark.uncovered
@given(rule_expressions(), histories())
def test_record_says_whether_the_memory_is_another(text: str, history: list[Message]) -> None:
    where = compile_rule(text)
    for message in history:
        before = repr(where.memory.get(message.topic))
        changed = where.record(message, where.evaluate(message))
        assert changed is (repr(where.memory.get(message.topic)) != before)


@table(
    ("text", "slots"),
    [
        ("DEADBAND(payload.t, 0.5) OR EVERY(300)", 2),
        ("EVERY(1) OR EVERY(2) AND SENT($received_at) > 5", 1),
        ("CHANGED(payload.t) AND PREV(payload.t) > 1", 1),
        ("PREV(t) = SENT(t)", 2),
        ("PREV(t + 1) = 1 OR PREV(t + 1.0) = 1 OR PREV(t + TRUE) = 1", 3),
        ("PREV(payload[0]) = PREV(payload.a)", 2),
        ("payload.t > 1", 0),
    ],
)
def test_equal_arguments_share_a_slot(text: str, slots: int) -> None:
    assert compile_rule(text).slots == slots


def test_what_is_remembered_does_not_grow_with_a_container() -> None:
    where = compile_rule("PREV(payload.t) IS NOT NULL AND SENT(payload.t) IS NULL")
    big = [list(range(1000))]
    assert run(where, [reading(big), reading(None), reading(big)]) == [False, True, True]
    assert where.memory.get("s/1") == [[], []]


def test_short_circuit_still_records() -> None:
    where = compile_rule("payload.t = 1 OR SENT(payload.t) IS NULL OR PREV(payload.t) = 9")
    assert run(where, [reading(1), reading(5)]) == [True, False]
    assert where.memory.get("s/1") == [1, 5]


def test_a_constant_argument_is_not_worked_out_beforehand() -> None:
    where = compile_rule("PREV(1 + 1) = 2")
    assert run(where, [reading(0), reading(0)]) == [None, True]


def test_seconds_may_be_a_numeric_text() -> None:
    where = compile_rule("EVERY('10')")
    times = [reading(1, time=time) for time in (0, 9_999, 10_000)]
    assert run(where, times) == [True, False, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DEADBAND(payload.t, 0)", None),
        ("DEADBAND(payload.t, NULL)", False),
        ("EVERY(NULL)", None),
        ("EVERY(9223372036854775807)", None),
    ],
)
def test_what_cannot_be_computed(text: str, expected: bool | None) -> None:
    where = compile_rule(text)
    where.record(reading(2**63 - 1), True)
    assert where.evaluate(reading(-5)) is expected


@table(
    ("text", "position", "message"),
    [
        ("a = 1 AND PREV(SENT(a)) = 1", 10, "PREV cannot contain SENT, which remembers, too"),
        ("DEADBAND(a, ABS(Prev(b)))", 0, "DEADBAND cannot contain Prev"),
        ("every(1 + (EVERY(2)))", 0, "every cannot contain EVERY"),
        ("a = 1 OR PREV()", 9, "PREV takes 1 argument, not 0"),
        ("sent(a, b)", 0, "sent takes 1 argument, not 2"),
        ("DEADBAND(a)", 0, "DEADBAND takes 2 arguments, not 1"),
        ("CHANGED(a", 9, "expected an operator, ',' or ')'"),
        ("PREV(a + ) = 1", 9, "expected an operand"),
        ("PREV(a) = SENT(", 15, "expected an operand"),
    ],
)
def test_errors(text: str, position: int, message: str) -> None:
    with pytest.raises(WhereError) as caught:
        compile_rule(text)
    assert (caught.value.position, caught.value.kind) == (position, "syntax")
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("name", ["PREV", "sent", "CHANGED", "DeadBand", "EVERY"])
def test_a_subscription_may_not_remember(name: str) -> None:
    with pytest.raises(WhereError) as caught:
        compile_where(f"a = 1 AND {name}(a, b")
    assert (caught.value.position, caught.value.kind) == (10, "syntax")
    assert compile_where(f"{name} = 1").evaluate(Message("t", b'{"%s": 1}' % name.encode()))


@pytest.mark.parametrize("form", ["qos = 5 OR retain AND qos = 1 + 1 * (", "NOT ", "- "])
def test_the_deepest_argument_needs_a_bounded_stack(form: str) -> None:
    inner = form * 31 + "qos" + ")" * (31 * form.count("("))
    message = Message("t", qos=1)

    def below(frames: int) -> list[bool | None]:
        return (
            run(compile_rule(f"CHANGED({inner})"), [message] * 2)
            if not frames
            else below(frames - 1)
        )

    assert below(500 - len(inspect.stack(0))) == [True, False]


def test_never_true() -> None:
    assert compile_rule("CHANGED(a) AND NULL").never_true
    assert not compile_rule("CHANGED(a)").never_true
    assert compile_rule(" CHANGED(a)").text == " CHANGED(a)"


def test_topics_beyond_the_bound_meet_an_empty_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_memory, "RULE_TOPICS", 2)
    where = compile_rule("CHANGED(payload.t)")
    sequence = [reading(1, f"s/{topic}") for topic in (1, 2, 3, 3, 1, 2)]
    assert run(where, sequence) == [True, True, True, True, False, False]
    assert (len(where.memory), where.memory.overflows) == (2, 2)


def test_texts_beyond_the_bound_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_memory, "RULE_CODE_POINTS", 20)
    where = compile_rule("CHANGED(payload.t)")
    run(where, [reading("x" * 5), reading("y" * 9, "s/2")])
    assert not where.record(reading("x" * 6, "s/3"), True)
    assert where.record(reading("x" * 9), True)  # all that was known of s/1 is gone
    assert where.memory.get("s/1") is None
    assert where.memory.overflows == 2
    assert where.record(reading("x" * 5), True)
    assert [where.memory.get(f"s/{topic}") for topic in (1, 2, 3)] == [["xxxxx"], ["y" * 9], None]
