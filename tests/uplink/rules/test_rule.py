"""A rule remembers across restarts, says what it did, and writes no more than it must."""

import itertools
import json
from pathlib import Path

import pytest

from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.budget import SAMPLED, Budget
from gateway.storage.state.rule_states import RuleKey, RuleStates
from gateway.uplink.rules.rule import Rule, key_of
from gateway.uplink.rules.rules import RuleSet
from gateway.where.evaluation import stateful as rule_memory
from gateway.where.rule import compile_rule
from tests.support.disk.storage import Store, crash_image, open_store

EPOCH = "00a1b2c3d4"


async def rule_set(store: Store, *expressions: str, retain: bool = False) -> RuleSet:
    """Give rules on `s/#` as a start of the gateway makes them."""
    rules = [Rule("s/#", compile_rule(expression), retain=retain) for expression in expressions]
    keys = [key_of(rules, place) for place in range(len(rules))]
    states = RuleStates(store.database, store.writer)
    found = await states.restore([key for key in keys if key is not None])
    await store.settle()
    return RuleSet(rules, store.outbox, store.counters, EPOCH, found)


def message(value: object, topic: str = "s/1", time: int = 1_000_000) -> Message:
    return Message(topic, json.dumps({"t": value}).encode(), 1, received_at=time)


def taken(rules: RuleSet, store: Store, *values: object) -> list[bool]:
    """Say of each value whether it went into the outbox."""
    results = []
    for value in values:
        before = store.outbox.rows
        assert rules.receive(message(value), ["s/#"]) == ReasonCode.SUCCESS
        results.append(store.outbox.rows > before)
    return results


def figures(store: Store, place: int = 0) -> dict[str, object]:
    prefix = f"tidegate/rules/{place}/"
    values = store.counters.values.items()
    return {name.removeprefix(prefix): value for name, value in values if name.startswith(prefix)}


async def after_a_crash(store: Store, to: Path) -> Store:
    await store.settle()
    return await open_store(crash_image(store.database.path.parent, to))


@pytest.mark.parametrize(
    ("expression", "before", "after"),
    [
        ("DEADBAND(payload.t, 1)", [20, 20.5, 21], [21.5, 22]),
        ("SENT(payload.t) IS NULL OR payload.t < SENT(payload.t)", [5, 6, 4], [4, 3]),
        ("CHANGED(payload.t)", [20, 20, 21], [21, 20]),
    ],
)
async def test_what_was_forwarded_survives_a_crash(
    store: Store, tmp_path: Path, expression: str, before: list[object], after: list[object]
) -> None:
    assert taken(await rule_set(store, expression), store, *before)[-1]
    later = await after_a_crash(store, tmp_path / "crash")
    assert taken(await rule_set(later, expression), later, *after) == [False, True]
    assert figures(later)["epoch"] == 1
    await later.close()


RISE = "payload.t - PREV(payload.t) > 5"


async def test_what_was_seen_alone_survives_a_stop(store: Store, tmp_path: Path) -> None:
    rules = await rule_set(store, RISE)
    assert taken(rules, store, 10, 20, 24) == [False, True, False]
    rules.save()
    later = await after_a_crash(store, tmp_path / "stop")
    rules = await rule_set(later, RISE)
    assert figures(later)["topics"] == 1
    assert taken(rules, later, 29, 35) == [False, True]
    assert figures(later)["epoch"] == 1
    await later.close()


async def test_what_was_seen_alone_is_forgotten_whole_in_a_crash(
    store: Store, tmp_path: Path
) -> None:
    assert taken(await rule_set(store, RISE), store, 10, 20, 24) == [False, True, False]
    later = await after_a_crash(store, tmp_path / "crash")
    rules = await rule_set(later, RISE)
    assert (figures(later)["epoch"], figures(later)["topics"]) == (2, 0)
    assert taken(rules, later, 30, 36) == [False, True]
    await later.close()


async def test_a_changed_expression_starts_empty(store: Store) -> None:
    assert taken(await rule_set(store, "CHANGED(payload.t)"), store, 1, 1) == [True, False]
    await store.settle()
    assert taken(await rule_set(store, "CHANGED(payload.t) "), store, 1, 1) == [True, False]
    assert figures(store)["epoch"] == 2


async def test_nothing_is_written_for_what_is_filtered(store: Store) -> None:
    rules = await rule_set(store, "DEADBAND(payload.t, 1) AND EVERY(10)", RISE)
    assert taken(rules, store, 1) == [True]
    assert store.writer.pending_rows == 2  # the message and what is remembered of it
    await store.settle()
    assert not any(taken(rules, store, *(1 + step / 100 for step in range(50))))
    assert store.writer.pending_rows == 1  # the mark that the second rule's state lags behind


async def test_an_equal_value_is_no_change(store: Store) -> None:
    rules = await rule_set(store, "CHANGED(payload.t)")
    assert taken(rules, store, 1, 1, 1) == [True, False, False]
    assert store.writer.pending_rows == 2


async def test_a_refused_message_is_not_remembered(store: Store) -> None:
    rules = await rule_set(store, "CHANGED(payload.t)", "FALSE")
    store.writer.attempts.failing = True
    assert rules.receive(message(1), ["s/#"]) == ReasonCode.QUOTA_EXCEEDED
    store.writer.attempts.failing = False
    assert figures(store)["evaluated"] == 0
    assert taken(rules, store, 1, 1) == [True, False]


async def test_a_rule_sees_only_what_reaches_it(store: Store) -> None:
    rules = await rule_set(store, "payload.t > 10", "CHANGED(payload.t)")
    assert taken(rules, store, 5, 11, 5, 6) == [True, True, False, True]
    assert [figures(store, place)["evaluated"] for place in (0, 1)] == [4, 3]


async def test_a_row_that_no_such_rule_made_is_left_out(store: Store) -> None:
    assert taken(await rule_set(store, "CHANGED(payload.t)"), store, 1) == [True]
    await store.settle()
    await store.database.writer.write([("UPDATE rule_memory SET remembered = '[1,2]'", [()])])
    assert taken(await rule_set(store, "CHANGED(payload.t)"), store, 1) == [True]


async def test_figures(store: Store) -> None:
    rules = await rule_set(store, "payload.t > 10", "payload.t > 20 OR EVERY(NULL)")
    taken(rules, store, 5, 11, "x")
    size = len('s/1{"t": 5}')
    assert figures(store) == {
        "topic": "s/#",
        "where": "payload.t > 10",
        "evaluated": 3,
        "passed": 1,
        "filtered": 2,
        "null": 1,
        "over_budget": 0,
        "bytes_saved": 0,
        "state_overflow": 0,
        "microseconds": "0.0",
    }
    assert figures(store, 1) == {
        "topic": "s/#",
        "where": "payload.t > 20 OR EVERY(NULL)",
        "evaluated": 2,
        "passed": 0,
        "filtered": 2,
        "null": 2,
        "over_budget": 0,
        "bytes_saved": size + size + 2,
        "microseconds": "0.0",
        "epoch": 1,
        "topics": 0,
        "state_overflow": 0,
    }
    assert store.counters.count("tidegate/rules/bytes_saved") == size + size + 2


async def test_what_a_rule_takes_is_measured(store: Store) -> None:
    rule = Rule("s/#", compile_rule("DEADBAND(payload.t, 1)"))
    budget = Budget(itertools.count(0, 1_500).__next__)
    rules = RuleSet([rule], store.outbox, store.counters, EPOCH, budget=budget)
    taken(rules, store, *range(SAMPLED + 1))
    assert figures(store)["microseconds"] == "1.5"
    assert rule.where
    assert rule.where.figures.samples == 2
    assert budget.slowest is rule.where
    assert budget.evaluated == 0  # of subscriptions


async def test_a_rule_without_expression_is_shown_too(store: Store) -> None:
    rules = RuleSet((), store.outbox, store.counters, EPOCH)
    rules.receive(Message("sensors/a", b"x", 1), ["sensors/#"])
    rules.save()
    assert (figures(store)["where"], figures(store)["passed"]) == ("", 1)


async def test_without_a_state_a_rule_leaves_nothing_behind(store: Store) -> None:
    rule = Rule("s/#", compile_rule("CHANGED(payload.t)"))
    rules = RuleSet([rule], store.outbox, store.counters, EPOCH)
    assert taken(rules, store, 1, 1) == [True, False]
    rules.save()
    assert store.writer.pending_rows == 1
    assert figures(store)["epoch"] == 0


async def test_topics_beyond_the_bound_are_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_memory, "RULE_TOPICS", 1)
    rules = await rule_set(store, "CHANGED(payload.t)")
    for topic in ("s/1", "s/2", "s/2"):
        rules.receive(message(1, topic), ["s/#"])
    assert store.outbox.rows == 3
    assert (figures(store)["topics"], figures(store)["state_overflow"]) == (1, 2)


async def test_a_topic_that_lost_its_room_is_deleted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_memory, "RULE_CODE_POINTS", 10)
    rules = await rule_set(store, "PREV(payload.t) IS NULL")
    assert taken(rules, store, "short", "much too long", "again") == [True, False, True]
    later = await after_a_crash(store, tmp_path / "crash")
    assert taken(await rule_set(later, "PREV(payload.t) IS NULL"), later, "x") == [False]
    await later.close()


def test_equal_rules_have_states_of_their_own() -> None:
    def rule(topic: str = "s/#", expression: str = "CHANGED(a)", stream: str = "main") -> Rule:
        return Rule(topic, compile_rule(expression), stream)

    rules = [rule(), rule("t/#"), rule(expression="a"), Rule("s/#"), rule(), rule(stream="b")]
    assert [key_of(rules, place) for place in range(len(rules))] == [
        RuleKey("main", "s/#", "CHANGED(a)", 0),
        RuleKey("main", "t/#", "CHANGED(a)", 0),
        None,
        None,
        RuleKey("main", "s/#", "CHANGED(a)", 1),
        RuleKey("b", "s/#", "CHANGED(a)", 0),
    ]


@pytest.mark.parametrize("expression", ["CHANGED(payload.t)", "DEADBAND(payload.t, 5)"])
async def test_a_rule_forgets_a_topic_that_is_cleared(
    store: Store, tmp_path: Path, expression: str
) -> None:
    rules = await rule_set(store, expression, retain=True)
    assert taken(rules, store, 20, 20) == [True, False]
    cleared = Message("s/1", b"", 1, retain=True, received_at=1_000_000)
    rules.receive(cleared, ["s/#"])
    after = await after_a_crash(store, tmp_path / "after")
    for at in (store, after):
        rules = rules if at is store else await rule_set(at, expression, retain=True)
        rows = at.outbox.rows
        assert rows == 2
        assert taken(rules, at, 20, 20) == [True, False]
    await after.close()
