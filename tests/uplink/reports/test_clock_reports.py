"""Clock records: what they say, and that they are kept until the fleet has them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

from gateway.clock.spans import ClockSpans, Finding, Span
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.state.clock_store import ClockStore
from gateway.uplink.reports.clock_reports import ClockReports, clock_record, clock_text
from gateway.uplink.reports.control_messages import ControlMessages
from gateway.uplink.reports.reliable_messages import MAX_UNANSWERED, REFUSED_SECONDS
from tests.support.clocks import NOW, ManualClock
from tests.support.disk.ledger import answer_all
from tests.support.disk.storage import Store, open_store
from tests.support.schemas import validator_of

BOOT = ManualClock().boot_id()


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return validator_of("clock-record")


def _reports(
    store: Store, own: ControlMessages, clock: ManualClock
) -> tuple[ClockStore, ClockReports]:
    kept = ClockStore(store.database, store.writer, store.counters)
    return kept, ClockReports(kept, own, store.counters, clock)


def note(kept: ClockStore, reports: ClockReports, findings: Sequence[Finding]) -> None:
    """Store findings and report them, as the gateway does."""
    for finding in findings:
        kept.add(clock_text(finding))
    kept.end_turn()
    reports.send()


async def test_a_late_synchronization_in_three_records(
    store: Store, validator: Draft202012Validator
) -> None:
    clock, own = ManualClock(wall_ms=0, uptime_ms=20_000), ControlMessages()
    kept, reports = _reports(store, own, clock)
    spans = ClockSpans(clock, "00a1b2c3d4", [])
    note(kept, reports, [spans.beginning()])
    clock.step(600)
    clock.synchronize(NOW)
    note(kept, reports, spans.sample({"main": 57}))
    records = answer_all(own)
    for record in records:
        validator.validate(record)
    common = {"epoch": "00a1b2c3d4", "boot": BOOT}
    first = common | {"from": 0, "uptime_ms": 20_000}
    assert records == [
        first | {"offset_ms": 0, "uncertainty_ms": None, "to": None, "numbers": {}},
        first
        | {
            "offset_ms": NOW - 600_000,
            "uncertainty_ms": 70,
            "to": 600_000,
            "numbers": {"main": [1, 57]},
        },
        common
        | {
            "offset_ms": 0,
            "uncertainty_ms": 10,
            "from": NOW,
            "to": None,
            "numbers": {"main": [58, None]},
            "uptime_ms": 620_000,
        },
    ]
    assert kept.records == {}


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ({}, {}, {}),
        ({"main": 4}, {"main": 4}, {}),
        ({"main": 4}, {"main": 5, "slow": 2}, {"main": [5, 5], "slow": [1, 2]}),
        ({"main": 4}, None, {"main": [5, None]}),
    ],
)
def test_numbers_of_a_span(
    first: dict[str, int], last: dict[str, int] | None, expected: dict[str, Any]
) -> None:
    spans = ClockSpans(ManualClock(), "00a1b2c3d4", [])
    finding = spans.beginning()
    finding.span.first, finding.span.last = first, last
    assert clock_record(finding)["numbers"] == expected


async def test_records_wait_for_the_fleet_over_a_restart(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    store = await open_store(tmp_path / "again")
    own, clock = ControlMessages(), ManualClock()
    kept, reports = _reports(store, own, clock)
    finding = ClockSpans(clock, "00a1b2c3d4", []).beginning()
    note(kept, reports, [finding] * (MAX_UNANSWERED + 3))
    assert len(own) == MAX_UNANSWERED
    assert len(answer_all(own, ReasonCode.NOT_AUTHORIZED)) == MAX_UNANSWERED
    await store.close()

    store = await open_store(tmp_path / "again")
    own = ControlMessages()
    kept, reports = _reports(store, own, clock)
    await kept.load(BOOT)
    assert len(kept.records) == MAX_UNANSWERED + 3
    reports.send()
    answer_all(own, ReasonCode.NOT_AUTHORIZED)
    clock.step(REFUSED_SECONDS)
    reports.send()
    reported = answer_all(own)
    assert len(reported) == MAX_UNANSWERED + 3
    assert kept.records == {}
    await store.close()


def test_a_span_of_another_epoch_is_told_in_its_name() -> None:
    clock = ManualClock(wall_ms=0)
    spans = ClockSpans(clock, "00a1b2c3d4", [Span(BOOT, "9f0e1d2c3b", -20_000, -10_000)])
    clock.step(10)
    clock.synchronize(NOW)
    record = clock_record(spans.sample({})[0])
    assert (record["epoch"], record["from"], record["to"]) == ("9f0e1d2c3b", -10_000, 0)
    assert record["uptime_ms"] == 10_000
