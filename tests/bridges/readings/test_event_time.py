import pytest

from gateway.bridges.readings.event_time import milliseconds
from gateway.bridges.readings.reading_publisher import AHEAD_MAX, EARLIEST
from tests.support.clocks import NOW, ManualClock
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

YEAR_2100 = 4_102_444_800_000


@table(
    ("time", "now", "good"),
    [
        (NOW - 1000, NOW, True),
        (NOW + AHEAD_MAX, NOW, True),
        (NOW + AHEAD_MAX + 1, NOW, False),
        (0, NOW, False),
        (EARLIEST - 1, NOW, False),
        (YEAR_2100, NOW, False),
        (NOW, 5000, True),  # the gateway's own clock was never set
        (4000, 5000, True),
    ],
)
def test_clocks_that_can_be_right(time: int, now: int, good: bool) -> None:
    """A time that cannot be right is replaced by the gateway's."""
    gateway = Gateway.make(ManualClock(now))
    gateway.host().read("n1", "temperature", 1, time=time)
    ((_, reading),) = gateway.broker.readings
    assert reading["time"] == (time if good else now)


TIMES = [(1_763_740_000, 1_763_740_000_000), (NOW, NOW), (1_763_740_000.5, 1_763_740_000_500)]


@pytest.mark.parametrize(("time", "expected"), TIMES)
def test_seconds_and_milliseconds(time: float, expected: int) -> None:
    assert milliseconds(time) == expected
