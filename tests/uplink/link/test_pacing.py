"""The backlog's rate adapts to the link."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.uplink import UplinkSettings
from gateway.uplink.link.pacing import (
    DELAY_TARGET,
    LEAST_BYTES,
    LEAST_MESSAGES,
    QUICK_INTERVAL,
    START_MESSAGES,
    Pacing,
    TokenBucket,
)
from tests.support.table import table

STEPS = st.lists(
    st.tuples(st.floats(0, 2), st.floats(0.1, 50)), min_size=1, max_size=60
)  # seconds to wait, and what the next thing costs


@pytest.mark.uncovered
@given(rate=st.floats(0.5, 1_000), burst=st.floats(0, 2), steps=STEPS)
def test_no_span_lets_more_go_than_its_time_allows(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(rate, burst, 0.0)
    now, gone = 0.0, [(0.0, 0.0)]
    for seconds, cost in steps:
        now += seconds
        if bucket.ready(now):
            bucket.spend(cost)
            gone.append((now, cost))
    for first in range(1, len(gone)):
        total = 0.0
        for at, cost in gone[first:]:
            most = rate * (at - gone[first][0] + burst) + 1 + cost
            total += cost
            assert total <= most * (1 + 1e-9)


@pytest.mark.uncovered
@given(rate=st.floats(0.5, 1_000), steps=STEPS)
def test_it_is_ready_when_it_said_it_would_be(
    rate: float, steps: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(rate, 0.1, 0.0)
    now = 0.0
    for seconds, cost in steps:
        now += seconds
        wait = bucket.wait(now)
        assert bucket.ready(now) == (wait == 0)
        now += wait + 1e-6
        assert bucket.ready(now)
        bucket.spend(cost)


def test_savings_are_bounded_and_a_debt_is_waited_for() -> None:
    bucket = TokenBucket(10.0, 0.5, 0.0)
    assert bucket.ready(1_000.0)
    bucket.spend(25)  # 5 were saved
    assert bucket.wait(1_000.0) == (1 + 20) / 10
    bucket.set_rate(100.0, 1_000.0)
    assert bucket.wait(1_000.0) == 0.21


def test_a_clock_that_stands_still_gives_nothing() -> None:
    bucket = TokenBucket(1.0, 0.0, 5.0)
    bucket.spend(1)
    assert not bucket.ready(5.0)
    assert not bucket.ready(4.0)
    assert bucket.ready(6.0)


NO_LIMITS = UplinkSettings()
SIZE = 200
DOUBLINGS = 6 * QUICK_INTERVAL


def _drive(
    pacing: Pacing, seconds: float, start: float = 0.0, size: int = SIZE, delay: float = 0.001
) -> int:
    """Send as much as it lets go, every PUBACK at once; return how many messages that were."""
    sent, now = 0, start
    while now < start + seconds:
        while pacing.ready(now):
            pacing.sent(1, size)
            pacing.answered(size, delay, now)
            sent += 1
        now += 0.01
    return sent


def _pacing(limits: UplinkSettings = NO_LIMITS) -> Pacing:
    pacing = Pacing(limits, 0.0)
    pacing.begin(0.001, 0.0)
    return pacing


@pytest.mark.parametrize(
    ("delay", "interval"), [(0.001, 0.05), (0.025, 0.05), (0.125, 0.25), (0.5, 1.0), (3.0, 1.0)]
)
def test_it_doubles_while_nothing_is_wrong_as_fast_as_that_is_felt(
    delay: float, interval: float
) -> None:
    pacing = Pacing(NO_LIMITS, 0.0)
    pacing.begin(delay, 0.0)
    before = pacing.bytes_per_second
    _drive(pacing, 5.5 * interval, size=10_000, delay=delay)
    assert pacing.bytes_per_second == before * 2**5


def test_a_moment_in_which_nothing_could_go_does_not_count_as_all_there_was() -> None:
    pacing = _pacing(UplinkSettings(backlog_messages_per_second=4_000))
    _drive(pacing, 3.0)
    pacing.ready(3.0)
    pacing.ready(3.3)  # nothing was answered for a while
    pacing.slow_down(3.4)
    assert 900 <= pacing.messages_per_second <= 2_000


def test_trouble_halves_and_then_it_grows_slowly() -> None:
    pacing = _pacing()
    _drive(pacing, DOUBLINGS)
    fast = pacing.messages_per_second
    pacing.slow_down(DOUBLINGS)
    halved = pacing.messages_per_second
    assert halved <= fast / 2
    assert pacing.slowdowns == 1
    pacing.slow_down(DOUBLINGS + 0.5)  # the same trouble still
    assert pacing.messages_per_second == halved
    _drive(pacing, 10.0, DOUBLINGS)
    assert halved < pacing.messages_per_second <= halved * (1 + 11 / 8)


def test_a_new_connection_begins_slowly_and_returns_quickly_to_half_of_what_went() -> None:
    pacing = _pacing()
    _drive(pacing, DOUBLINGS)
    pacing.slow_down(DOUBLINGS)
    halved = pacing.messages_per_second
    pacing.begin(0.001, 5.0)
    assert pacing.messages_per_second == START_MESSAGES
    _drive(pacing, 6.0, 5.0)
    assert halved <= pacing.messages_per_second <= halved * (1 + 6 / 8)


def test_a_connection_that_carries_no_backlog_leaves_the_rate_as_it_was() -> None:
    pacing = _pacing()
    pacing.lost(1.0)
    assert (pacing.messages_per_second, pacing.slowdowns) == (START_MESSAGES, 0)
    pacing.sent(1, 100)
    pacing.lost(2.0)
    assert (pacing.messages_per_second, pacing.slowdowns) == (START_MESSAGES / 2, 1)


def test_a_rate_that_nobody_needs_does_not_grow() -> None:
    pacing = _pacing()
    for second in range(100):
        assert pacing.ready(float(second))
        pacing.sent(1, SIZE)
        pacing.answered(SIZE, 0.001, float(second))
    assert pacing.messages_per_second == START_MESSAGES


@pytest.mark.uncovered
@given(st.lists(st.sampled_from(["slow", "go", "begin", "late"]), max_size=80))
def test_it_never_stops_for_good(events: list[str]) -> None:
    pacing = _pacing(UplinkSettings(backlog_messages_per_second=300))
    now = 0.0
    for event in events:
        now += 1.0
        if event == "slow":
            pacing.slow_down(now)
        elif event == "begin":
            pacing.begin(0.1, now)
        elif event == "late":
            pacing.answered(0, 10.0, now)
        else:
            _drive(pacing, 0.1, now)
    assert pacing.messages_per_second >= LEAST_MESSAGES
    assert pacing.bytes_per_second >= LEAST_BYTES
    assert _drive(pacing, 10.0, now + 1) >= 5


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (UplinkSettings(backlog_messages_per_second=300), 300),
        (UplinkSettings(backlog_bytes_per_second=20_000), 20_000 / SIZE),
    ],
)
def test_the_limits_of_the_settings_hold(limits: UplinkSettings, most: float) -> None:
    pacing = _pacing(limits)
    assert _drive(pacing, 20.0) <= most * 20.1 + 2
    assert _drive(pacing, 10.0, 20.0) >= most * 9.5


def test_what_is_in_flight_is_bounded_by_what_was_carried() -> None:
    pacing = _pacing(UplinkSettings(backlog_bytes_per_second=100_000))
    _drive(pacing, 10.0)
    sent, now = 0, 10.0
    while now < 15.0:  # nobody answers
        if pacing.ready(now):
            pacing.sent(1, SIZE)
            sent += SIZE
        now += 0.001
    assert sent <= 100_000 * (0.001 + DELAY_TARGET) + SIZE
    assert pacing.wait(now) is None
    pacing.answered(sent, 0.001, now)
    assert pacing.wait(now) == 0


@pytest.mark.uncovered
@table(
    ("bandwidth", "round_trip"), [(10_000, 0.6), (50_000, 0.02), (250_000, 0.6), (1_000_000, 0.02)]
)
def test_live_messages_are_never_late_on_a_narrow_link(bandwidth: int, round_trip: float) -> None:
    """A link is a queue that empties at `bandwidth`; a live message a second stands behind it."""
    pacing = Pacing(NO_LIMITS, 0.0)
    pacing.begin(round_trip, 0.0)
    free_at, now, next_live = 0.0, 0.0, 5.0  # from the sixth second on
    answers: deque[tuple[float, float, int]] = deque()
    late: list[float] = []
    carried = 0
    while now < 120.0:
        while answers and answers[0][0] <= now:
            _, at, size = answers.popleft()
            pacing.answered(size, now - at, now)
        if now >= next_live:
            free_at = max(free_at, now) + SIZE / bandwidth
            answers.append((free_at + round_trip, now, 0))
            late.append(free_at - now)
            next_live += 1.0
        while pacing.ready(now):
            free_at = max(free_at, now) + SIZE / bandwidth
            answers.append((free_at + round_trip, now, SIZE))
            pacing.sent(1, SIZE)
            carried += SIZE
        now += 0.005
    late.sort()
    assert late[len(late) * 99 // 100] < 1.0
    assert carried > bandwidth * 120 * 0.4
