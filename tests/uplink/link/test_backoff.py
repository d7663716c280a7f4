import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.uplink.link.backoff import Backoff


@pytest.mark.parametrize(
    ("jitter", "delays"), [(0.0, [0.5, 1.0, 2.0, 4.0, 4.0]), (1.0, [1.0, 2.0, 4.0, 8.0, 8.0])]
)
def test_delays_double_up_to_the_longest(jitter: float, delays: list[float]) -> None:
    backoff = Backoff(1.0, 8.0, lambda: jitter)
    assert [backoff.delay() for _ in delays] == delays
    backoff.reset()
    assert backoff.delay() == delays[0]


@pytest.mark.uncovered
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_every_delay_is_between_half_of_the_first_and_the_longest(numbers: list[float]) -> None:
    source = iter(numbers)
    backoff = Backoff(1.0, 60.0, lambda: next(source))
    assert all(0.5 <= backoff.delay() <= 60.0 for _ in numbers)
