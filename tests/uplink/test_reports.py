"""Reports are given until they are taken, a bounded number at a time."""

import pytest

from gateway.counters import Counters
from gateway.uplink.reports import MAX_IN_HAND, REFUSED_SECONDS, Report, Reports
from tests.support.clocks import ManualClock


class Counting:
    """A source with so many reports."""

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.left = list(range(1, count + 1))
        self.taken: list[int] = []

    async def next(self, largest: int) -> Report | None:
        if not self.left or largest < 2:
            return None
        number = self.left.pop(0)
        return Report(self.kind, b"%d" % number, lambda: self.taken.append(number))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_sources_are_asked_in_order_and_reports_are_bounded(clock: ManualClock) -> None:
    first, second = Counting("clock", 1), Counting("ledger", 20)
    reports = Reports([first, second], Counters(), clock)
    given = [await reports.next(100) for _ in range(MAX_IN_HAND + 1)]
    assert given[-1] is None
    kinds = [(report.kind, report.payload) for report in given if report is not None]
    assert kinds == [("clock", b"1"), *(("ledger", b"%d" % n) for n in range(1, MAX_IN_HAND))]


async def test_a_taken_report_makes_room_and_is_forgotten_once(clock: ManualClock) -> None:
    source, counters = Counting("ledger", 2), Counters()
    reports = Reports([source], counters, clock)
    report = await reports.next(100)
    assert report is not None
    reports.taken(report)
    reports.taken(report)
    assert (source.taken, counters.count("tidegate/ledger/acknowledged")) == ([1], 1)


async def test_what_was_not_taken_is_given_again_in_order(clock: ManualClock) -> None:
    source = Counting("ledger", 4)
    reports = Reports([source], Counters(), clock)
    given = [await reports.next(100) for _ in range(3)]
    assert given[1] is not None
    reports.taken(given[1])
    reports.start_over()
    again = [await reports.next(100) for _ in range(4)]
    assert [report and report.payload for report in again] == [b"1", b"3", b"4", None]
    assert source.taken == [2]


async def test_a_refused_report_is_kept_and_holds_the_others_back(clock: ManualClock) -> None:
    source, counters = Counting("ledger", 2), Counters()
    reports = Reports([source], counters, clock)
    report = await reports.next(100)
    assert report is not None
    reports.refused(report, 0x87)
    assert await reports.next(100) is None
    clock.step(REFUSED_SECONDS)
    assert await reports.next(100) is report
    assert counters.count("tidegate/ledger/refused") == 1
