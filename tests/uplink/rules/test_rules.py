"""Numbers before filters, filters in order, nothing numbered that is not taken in."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.row import Outcome
from gateway.uplink.rules.rule import DEFAULT_RULES, Rule
from gateway.uplink.rules.rules import RuleSet
from gateway.where.rule import compile_rule
from tests.support.disk.storage import Store, bounded, open_store

if TYPE_CHECKING:
    from gateway.storage.ledger.ledger import Ledger

EPOCH = "00a1b2c3d4"


def _message(value: object, topic: str = "sensors/n1/t") -> Message:
    return Message(topic, b'{"value":%s}' % str(value).encode(), 1, received_at=1_000)


async def _rows(store: Store) -> list[tuple[str, int, str]]:
    await store.settle()
    rows = await store.outbox.fetch(0, 1_000)
    return [(row.stream, row.seq, row.message.payload.decode()) for row in rows]


async def test_without_a_rule_sensors_go_up(store: Store) -> None:
    rules = RuleSet((), store.outbox, store.counters, EPOCH)
    assert rules.topic_filters == ["sensors/#"]
    assert rules.client_id == "$uplink"
    assert rules.receive(_message(1), ["sensors/#"]) == ReasonCode.SUCCESS
    await store.settle()
    [row] = await store.outbox.fetch(0, 10)
    assert (row.epoch, row.stream, row.seq, row.lane) == (EPOCH, "main", 1, "live")
    assert (row.message.topic, row.message.payload, row.time) == (
        "sensors/n1/t",
        b'{"value":1}',
        1_000,
    )


async def test_a_filtered_message_uses_a_number_and_writes_nothing(store: Store) -> None:
    rule = Rule("sensors/#", compile_rule("payload.value > 20"))
    rules = RuleSet([rule], store.outbox, store.counters, EPOCH)
    for value in (21, 5, '"x"', 30):
        rules.receive(_message(value), ["sensors/#"])
    assert await _rows(store) == [("main", 1, '{"value":21}'), ("main", 4, '{"value":30}')]
    figures = [
        store.counters.count(f"tidegate/rules/{n}") for n in ("matched", "accepted", "filtered")
    ]
    assert figures == [4, 2, 2]


async def test_the_first_rule_that_passes_takes_it_in_each_stream(store: Store) -> None:
    rules = RuleSet(
        [
            Rule("sensors/#", compile_rule("payload.value > 20"), "main", "live"),
            Rule("sensors/+/t", None, "slow", "backlog"),
            Rule("sensors/#", compile_rule("payload.value > 10"), "main", "backlog"),
            Rule("other/#", None, "main"),
        ],
        store.outbox,
        store.counters,
        EPOCH,
    )
    assert rules.topic_filters == ["sensors/#", "other/#", "sensors/+/t"]
    for value in (25, 15, 5):
        rules.receive(_message(value), ["sensors/#", "sensors/+/t"])
    rules.receive(_message(1, "other/x"), ["other/#"])
    await store.settle()
    rows = [(row.stream, row.seq, row.lane) for row in await store.outbox.fetch(0, 100)]
    assert rows == [
        ("main", 1, "live"),
        ("slow", 1, "backlog"),
        ("main", 2, "backlog"),
        ("slow", 2, "backlog"),
        ("slow", 3, "backlog"),
        ("main", 4, "live"),
    ]


async def test_a_full_outbox_refuses_before_any_number_is_used(tmp_path: Path) -> None:
    store = await open_store(tmp_path, settings=bounded(maximum_messages=1))
    rules = RuleSet(DEFAULT_RULES, store.outbox, store.counters, EPOCH)
    codes = [rules.receive(_message(value), ["sensors/#"]) for value in (1, 2)]
    assert codes == [ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]
    assert store.counters.count("tidegate/outbox/rejected") == 1
    await store.settle()
    store.outbox.remove(await store.outbox.fetch(0, 10), Outcome.DELIVERED)
    assert rules.receive(_message(3), ["sensors/#"]) == ReasonCode.SUCCESS
    assert await _rows(store) == [("main", 2, '{"value":3}')]
    await store.close()


async def test_a_full_outbox_refuses_only_what_a_rule_wants(tmp_path: Path) -> None:
    store = await open_store(tmp_path, settings=bounded(maximum_messages=1))
    rule = Rule("sensors/#", compile_rule("payload.value > 20"))
    rules = RuleSet([rule], store.outbox, store.counters, EPOCH)
    codes = [rules.receive(_message(value), ["sensors/#"]) for value in (21, 5, 30)]
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]
    assert store.counters.count("tidegate/rules/filtered") == 1
    await store.close()


async def test_a_disk_that_takes_no_more_refuses_and_is_counted_apart(store: Store) -> None:
    rules = RuleSet((), store.outbox, store.counters, EPOCH)
    store.writer.attempts.failing = True
    assert rules.receive(_message(1), ["sensors/#"]) == ReasonCode.QUOTA_EXCEEDED
    assert store.counters.count("tidegate/storage/rejected") == 1
    assert store.counters.count("tidegate/outbox/rejected") == 0


@pytest.mark.parametrize("starts", [1, 2])
async def test_numbers_begin_at_one_with_each_start(store: Store, starts: int) -> None:
    for start in range(starts):
        rules = RuleSet((), store.outbox, store.counters, f"{start:010x}")
        rules.receive(_message(1), ["sensors/#"])
    await store.settle()
    rows = [(row.epoch, row.seq) for row in await store.outbox.fetch(0, 10)]
    assert rows == [(f"{start:010x}", 1) for start in range(starts)]


class NotedLedger:
    """Keeps why numbers were filtered."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def numbered(self, stream: str, number: int) -> None:
        pass

    def filtered(self, stream: str, number: int, rule: str, uplinks: int) -> None:
        self.reasons.append(rule)


async def test_a_rule_that_would_cost_too_much_is_null_and_told_of(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    dear = " OR ".join(f"payload LIKE '%_x{number}%'" for number in range(3))
    rules = [
        Rule("sensors/#", compile_rule(f"NOT ({dear})")),
        Rule("sensors/#", compile_rule("payload LIKE '%_y%' OR CHANGED(payload)")),
        Rule("sensors/#", compile_rule(" AND ".join(["topic = 'x'"] * 200))),
    ]
    ledger = NotedLedger()
    rule_set = RuleSet(rules, store.outbox, store.counters, EPOCH, ledger=cast("Ledger", ledger))
    for size in (30_000, 100, 25_000):
        message = Message("sensors/n1", ("é" * size).encode(), 1, received_at=1_000)
        rule_set.receive(message, ["sensors/#"])
    assert [row[:2] for row in await _rows(store)] == [("main", 2), ("main", 3)]
    version = ledger.reasons[0].partition(":")[0]
    assert ledger.reasons == [f"{version}:over_budget"]
    assert version.startswith("2@")
    assert store.counters.count("tidegate/rules/0/over_budget") == 1
    assert store.counters.count("tidegate/rules/0/null") == 1
    assert "uplink.rule[0]: a filter is NULL" in caplog.messages[0]


@pytest.mark.parametrize("retain", [True, False])
async def test_what_clears_a_topic_goes_up_whatever_the_rule_says(
    store: Store, retain: bool
) -> None:
    rule = Rule("sensors/#", compile_rule("payload.value > 20"), retain=retain)
    rules = RuleSet([rule], store.outbox, store.counters, EPOCH)
    for payload, retained in ((b'{"value":25}', True), (b"", False), (b"", True)):
        message = Message("sensors/n1", payload, 1, retain=retained, received_at=1_000)
        rules.receive(message, ["sensors/#"])
    cleared = [("main", 3, "")] if retain else []
    assert await _rows(store) == [("main", 1, '{"value":25}'), *cleared]
    assert store.counters.count("tidegate/rules/0/passed") == 1 + retain
    assert store.counters.count("tidegate/rules/0/null") == 2 - retain
