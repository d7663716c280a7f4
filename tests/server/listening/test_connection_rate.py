from hypothesis import given
from hypothesis import strategies as st

from gateway.server.listening.connection_limits import ConnectionRate


def test_a_burst_then_the_rate() -> None:
    rate = ConnectionRate(2.0, 3)
    assert [rate.allows(100.0) for _ in range(4)] == [True, True, True, False]
    assert not rate.allows(100.4)
    assert rate.allows(100.5)
    assert not rate.allows(100.9)
    assert rate.allows(101.0)


def test_a_quiet_time_gives_no_more_than_the_burst() -> None:
    rate = ConnectionRate(10.0, 2)
    assert rate.allows(1.0)
    assert [rate.allows(1_000_000.0) for _ in range(3)] == [True, True, False]


@given(
    st.floats(0.01, 1000),
    st.integers(1, 100),
    st.lists(st.floats(0, 10, allow_subnormal=False), max_size=200),
)
def test_never_more_than_burst_and_rate_allow(rate: float, burst: int, gaps: list[float]) -> None:
    bucket = ConnectionRate(rate, burst)
    now = start = 50.0
    allowed = 0
    for gap in gaps:
        now += gap
        allowed += bucket.allows(now)
        assert allowed <= burst + (now - start) * rate + 1e-6
