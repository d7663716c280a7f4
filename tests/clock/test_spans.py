"""What a gateway learns of its own wall clock."""

import pytest

from gateway.clock import Synchronization
from gateway.clock.spans import DRIFT, MAX_SPANS, STEP_MS, ClockSpans, Finding, read_both
from tests.support.clocks import NOW, ManualClock

EPOCH = "00a1b2c3d4"
MINUTE = 60_000


def _said(findings: list[Finding]) -> list[tuple[int, int | None, int, int | None]]:
    return [(each.offset, each.uncertainty, each.span.begins, each.span.ends) for each in findings]


def _drift(milliseconds: int) -> int:
    return round(DRIFT * milliseconds)


def test_a_board_that_boots_at_1970_learns_the_time_after_ten_minutes() -> None:
    clock = ManualClock(wall_ms=5_000)
    spans = ClockSpans(clock, EPOCH, [])
    assert _said([spans.beginning()]) == [(0, None, 5_000, None)]
    for _ in range(120):
        clock.step(5)
        assert spans.sample({"main": 7}) == []
    clock.synchronize(NOW, error_ms=20)
    findings = spans.sample({"main": 9})
    ends = 5_000 + 10 * MINUTE
    assert _said(findings) == [
        (NOW - ends, 20 + _drift(10 * MINUTE), 5_000, ends),
        (0, 20, NOW, None),
    ]
    assert findings[0].span.last == {"main": 9} == findings[1].span.first
    assert (spans.steps, spans.synchronized, spans.uncertainty) == (1, True, 20)
    assert spans.sample({"main": 10}) == []


def test_a_clock_that_was_right_by_chance_is_said_to_be(  # as an RTC, or fake-hwclock
) -> None:
    clock = ManualClock()
    spans = ClockSpans(clock, EPOCH, [])
    clock.step(100)
    clock.synchronize(clock.wall_ms() + STEP_MS // 2)
    assert _said(spans.sample({})) == [
        (STEP_MS // 2, 10 + _drift(100_000), NOW, NOW + 100_000),
        (0, 10, NOW + 100_000 + STEP_MS // 2, None),
    ]
    assert spans.steps == 0


def test_a_step_back_is_told_by_numbers() -> None:
    clock = ManualClock()
    clock.synchronize(NOW)
    spans = ClockSpans(clock, EPOCH, [])
    clock.step(60)
    clock.set_wall(NOW)
    ended, begun = spans.sample({"main": 5})
    assert _said([ended, begun]) == [
        (-MINUTE, 10 + _drift(MINUTE), NOW, NOW + MINUTE),
        (0, 10, NOW, None),
    ]
    assert (ended.span.first, ended.span.last, begun.span.first) == ({}, {"main": 5}, {"main": 5})


def test_a_person_sets_the_clock_and_ntp_corrects_both_spans_later() -> None:
    clock = ManualClock(wall_ms=0)
    spans = ClockSpans(clock, EPOCH, [])
    clock.step(60)
    clock.set_wall(NOW - 2 * MINUTE)
    assert [each.uncertainty for each in spans.sample({})] == [None, None]
    clock.step(60)
    clock.synchronize(NOW)
    assert _said(spans.sample({})) == [
        (NOW - 2 * MINUTE, 10 + _drift(2 * MINUTE), 0, MINUTE),
        (MINUTE, 10 + _drift(MINUTE), NOW - 2 * MINUTE, NOW - MINUTE),
        (0, 10, NOW, None),
    ]
    assert spans.uncorrected == []


def test_an_earlier_epoch_of_the_same_boot_is_corrected_too() -> None:
    clock = ManualClock(wall_ms=0)
    before = ClockSpans(clock, "9f0e1d2c3b", []).span
    clock.step(30)
    spans = ClockSpans(clock, EPOCH, [before])
    clock.step(30)
    clock.synchronize(NOW)
    assert [(each.span.epoch, each.offset) for each in spans.sample({})] == [
        ("9f0e1d2c3b", NOW - MINUTE),
        (EPOCH, NOW - MINUTE),
        (EPOCH, 0),
    ]


def test_losing_the_time_server_begins_a_span_and_corrects_nothing() -> None:
    clock = ManualClock()
    clock.synchronize(NOW)
    spans = ClockSpans(clock, EPOCH, [])
    clock.state = Synchronization(synchronized=False)
    assert _said(spans.sample({})) == [(0, None, NOW, None)]
    clock.step(1_000)
    clock.state = Synchronization(synchronized=True, error_ms=3)
    assert _said(spans.sample({})) == [
        (0, 3 + _drift(1_000_000), NOW, NOW + 1_000_000),
        (0, 3, NOW + 1_000_000, None),
    ]


@pytest.mark.parametrize("change", [STEP_MS, -STEP_MS, 0])
def test_what_ntp_slews_is_no_step(change: int) -> None:
    clock = ManualClock()
    spans = ClockSpans(clock, EPOCH, [])
    clock.step(5)
    clock.set_wall(clock.wall_ms() + change)
    assert spans.sample({}) == []


def test_a_synchronized_clock_that_shows_the_past_is_not_believed() -> None:
    clock = ManualClock(wall_ms=0)
    clock.synchronize(86_400_000)
    spans = ClockSpans(clock, EPOCH, [])
    assert (spans.synchronized, spans.uncertainty) == (False, None)


class BusyClock(ManualClock):
    """Others run for a while before the first few readings of the wall clock."""

    def __init__(self, pauses: list[int]) -> None:
        super().__init__()
        self.pauses = pauses

    def wall_ns(self) -> int:
        self.now_ms += self.pauses.pop() if self.pauses else 0
        return super().wall_ns()


def test_a_busy_board_takes_no_pause_for_a_step() -> None:
    clock = BusyClock([900, 700])
    wall, uptime = read_both(clock)
    assert wall - uptime == clock.wall_offset
    spans = ClockSpans(clock, EPOCH, [])
    clock.pauses = [600, 800]
    assert spans.sample({}) == []


def test_uncorrected_spans_are_bounded() -> None:
    clock = ManualClock()
    spans = ClockSpans(clock, EPOCH, [])
    for _ in range(MAX_SPANS + 5):
        clock.step(5)
        clock.set_wall(clock.wall_ms() + 10_000)
        spans.sample({})
    assert len(spans.uncorrected) == MAX_SPANS


def test_a_span_that_a_crash_cut_off_ended_before_this_start() -> None:
    clock = ManualClock(wall_ms=0)
    before = ClockSpans(clock, "9f0e1d2c3b", []).span
    clock.step(30)
    clock.set_wall(MINUTE)
    spans = ClockSpans(clock, EPOCH, [before])
    assert [span.ends for span in spans.uncorrected] == [30_000]
