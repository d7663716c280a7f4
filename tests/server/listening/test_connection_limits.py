import logging

import pytest

from gateway.counters import Counters
from gateway.server.listening.connection_limits import (
    LOG_INTERVAL,
    MAXIMUM_REFUSALS,
    ConnectionLimits,
    ProcessConnections,
    Verdict,
)
from gateway.settings.listener import ListenerSettings

ADMITTED, REFUSED, CLOSED = Verdict.ADMITTED, Verdict.REFUSED, Verdict.CLOSED


@pytest.fixture
def counters() -> Counters:
    return Counters()


def limits(
    counters: Counters, room: ProcessConnections | None = None, **settings: float
) -> ConnectionLimits:
    return ConnectionLimits("here", ListenerSettings(**settings), counters, room)  # type: ignore[arg-type]  # by name


def test_without_limits_everyone_is_admitted(counters: Counters) -> None:
    free = limits(counters)
    assert {free.judge(0.0) for _ in range(1_000)} == {ADMITTED}
    assert counters.values == {"tidegate/connections/open": 1_000}


def test_beyond_the_maximum_some_are_told_and_the_rest_closed(counters: Counters) -> None:
    small = limits(counters, maximum_connections=3)
    assert [small.judge(0.0) for _ in range(3)] == [ADMITTED] * 3
    assert [small.judge(0.0) for _ in range(MAXIMUM_REFUSALS)] == [REFUSED] * MAXIMUM_REFUSALS
    assert [small.judge(0.0) for _ in range(5)] == [CLOSED] * 5
    assert counters.count("tidegate/connections/over_maximum") == MAXIMUM_REFUSALS + 5
    for _ in range(MAXIMUM_REFUSALS):
        small.release()
    assert small.judge(0.0) is REFUSED
    small.release()
    small.release()
    assert small.judge(0.0) is ADMITTED


def test_faster_than_the_rate_is_closed(counters: Counters) -> None:
    slow = limits(counters, connection_rate=8, connection_burst=2)
    assert [slow.judge(5.0) for _ in range(3)] == [ADMITTED, ADMITTED, CLOSED]
    assert slow.judge(5.125) is ADMITTED
    assert slow.open == 3
    assert counters.count("tidegate/connections/over_rate") == 1


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (1, 1), (20.9, 20)])
def test_the_burst_is_by_default_what_a_second_gives(
    counters: Counters, rate: float, burst: int
) -> None:
    slow = limits(counters, connection_rate=rate)
    assert [slow.judge(5.0) for _ in range(burst + 1)] == [ADMITTED] * burst + [CLOSED]


def test_listeners_share_the_room_of_the_process(counters: Counters) -> None:
    room = ProcessConnections(3)
    one, other = limits(counters, room), limits(counters, room, maximum_connections=1)
    assert [one.judge(0.0), other.judge(0.0), other.judge(0.0)] == [ADMITTED, ADMITTED, REFUSED]
    assert one.judge(0.0) is CLOSED
    assert counters.count("tidegate/connections/over_capacity") == 1
    assert counters.count("tidegate/connections/open") == 3
    other.release()
    assert one.judge(0.0) is ADMITTED


def test_turning_away_is_logged_once_a_minute(
    counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    small = limits(counters, maximum_connections=1)
    small.judge(0.0)
    for second in range(int(LOG_INTERVAL) + 1):
        small.judge(1_000.0 + second)
    assert caplog.messages == ["here refuses connections: over maximum"] * 2
