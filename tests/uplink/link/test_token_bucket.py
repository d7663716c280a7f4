"""The token bucket: what it lets go in any span, and when it says that the next may go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.uplink.link.token_bucket import TokenBucket

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
