"""Two rules beside each other: in their place among others, within a budget, with bounds."""

from typing import cast

import pytest

from gateway.mqtt.message import Message
from gateway.routing.budget import Budget
from gateway.uplink.rules import trial as module
from gateway.uplink.rules.rule import Rule
from gateway.uplink.rules.trial import Side, Trial
from gateway.where.rule import compile_rule

A, B = 1, 2
"""Two uplinks."""


def message(value: object, topic: str = "s/1", at: float = 0.0) -> Message:
    payload = b'{"value":%s}' % str(value).encode()
    return Message(topic, payload, 1, received_at=1_000, arrived=at)


def rule(where: str | None = None, topic: str = "s/#", uplinks: int = A, stream: str = "m") -> Rule:
    return Rule(topic, None if where is None else compile_rule(where), stream, uplinks=uplinks)


def beside(old: Rule | None, new: Rule | None, *earlier: Rule) -> Trial:
    before = None if old is None else Side(old, earlier, edited=False)
    after = None if new is None else Side(new, earlier, edited=True)
    filters = [each.topic for each in (*earlier, *([] if old is None else [old]))]
    return Trial(before, after, filters, Budget())


def taken(trial: Trial) -> tuple[int, int]:
    assert trial.old is not None
    assert trial.new is not None
    return trial.old.messages, trial.new.messages


def test_a_rule_takes_what_no_rule_before_it_takes_for_all_its_uplinks() -> None:
    earlier = rule("payload.value > 90"), rule("TRUE", stream="other"), rule("TRUE", uplinks=4)
    trial = beside(rule(uplinks=A), rule(uplinks=A | B), *earlier)
    for value in (50, 95):
        trial.evaluate(message(value))
    assert taken(trial) == (1, 2)  # 95 went by A already, and goes by B too


def test_rules_before_it_remember_nothing_of_a_trial() -> None:
    earlier = rule("CHANGED(payload.value)")
    assert earlier.where is not None
    trial = beside(rule(), rule("payload.value > 5"), earlier)
    trial.evaluate(message(7))
    trial.evaluate(message(7))
    assert taken(trial) == (0, 0)
    earlier.where.record(message(7), True)
    trial.evaluate(message(7))
    assert taken(trial) == (1, 1)


def test_an_expression_that_costs_too_much_is_null_and_counted() -> None:
    trial = beside(rule(), rule("payload.value LIKE '%a_b%' OR payload.value LIKE '%a_d%'"))
    trial.evaluate(message(f'"{"abc" * 20_000}"'))
    trial.evaluate(message('"axb"'))
    assert taken(trial) == (2, 1)
    assert trial.new is not None
    assert (trial.new.null, trial.new.over_budget) == (1, 1)


def test_what_it_costs_counts_for_the_turn() -> None:
    class Spent:
        work = 0

        def spend(self, work: int) -> None:
            self.work += work

    budget = Spent()
    edited = Side(rule("payload.value LIKE '%a%b%'"), (), edited=True)
    Trial(None, edited, ["s/#"], cast("Budget", budget)).evaluate(message(f'"{"a" * 10_000}"'))
    assert budget.work > 0


def test_topics_beyond_the_bounds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAXIMUM_TOPICS", 2)
    monkeypatch.setattr(module, "KNOWN_TOPICS", 1)
    trial = beside(rule(), rule("FALSE"))
    for number in range(4):
        trial.evaluate(message(1, f"s/{number}", at=float(number)))
        trial.evaluate(message(1, f"s/{number}", at=number + 0.5))
    assert (trial.messages, trial.untracked) == (8, 4)
    assert trial.old is not None
    assert trial.old.messages == 8
    assert trial.old.worst == ("s/0", 0.5)
    trial.evaluate(message(1, "s/1", at=9.0))
    assert trial.new is not None
    assert trial.new.worst == ("s/1", 8.0)


def test_messages_that_no_rule_is_for_are_looked_at_apart() -> None:
    trial = beside(rule(topic="s/1"), rule(topic="#"))
    assert not trial.wants("s/1")
    assert trial.wants("elsewhere")
    assert not trial.wants("$SYS/broker/uptime")
    trial.evaluate(message(1, "elsewhere"))  # the history has it, too
    trial.evaluate_other(message(1, "elsewhere"))
    trial.evaluate(message(1, "s/1"))
    assert taken(trial) == (1, 2)


def test_the_edited_rule_takes_over_what_both_remember() -> None:
    old = rule("DEADBAND(payload.value, 5) OR PREV(payload.unit) = 'C'")
    assert old.where is not None
    old.where.record(message(20), True)
    new = rule("DEADBAND(payload.value, 1) AND SENT(payload.other) IS NULL")
    trial = beside(old, new)
    trial.evaluate(message(20.5))
    assert taken(trial) == (0, 0)
    trial.evaluate(message(21))
    assert taken(trial) == (0, 1)
    trial.evaluate(message(21.5))  # it remembers what it took itself from now on
    assert taken(trial) == (0, 1)


def test_what_clears_a_topic_is_taken_by_a_rule_that_retains() -> None:
    new = Rule("s/#", compile_rule("CHANGED(payload.value)"), retain=True)
    trial = beside(rule("payload.value > 5"), new)
    cleared = Message("s/1", b"", 1, retain=True, received_at=1_000, arrived=0.0)
    for each in (message(7), cleared, message(7), message(7)):
        trial.evaluate(each)
    assert taken(trial) == (3, 3)
    assert trial.only_new == 1  # the clearing; the last 7 is the other's alone
