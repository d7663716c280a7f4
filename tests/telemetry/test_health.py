import asyncio

import pytest

from gateway.telemetry import health as heartbeat
from gateway.telemetry.health import INTERVAL, REMEMBERED, STILL, Heartbeat


class LoopClock:
    """The loop's clock, which a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[tuple[float, object]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: object) -> None:
        self.timers.append((when, callback))


async def test_a_loop_that_stood_still_is_told_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = LoopClock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    heart = Heartbeat()
    heart.start()
    assert clock.timers[-1] == (1000.0 + INTERVAL, heart._beat)
    clock.now += INTERVAL + STILL - 0.01
    heart._beat()
    assert heart.late == 0.0
    clock.now += INTERVAL + STILL + 1.0
    heart._beat()
    assert heart.late == pytest.approx(STILL + 1.0)
    clock.now += REMEMBERED
    assert heart.late == 0.0


async def test_it_beats_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.001)
    heart = Heartbeat()
    heart.stop()  # before it has begun
    heart.start()
    due = heart._due
    deadline = asyncio.get_running_loop().time() + 60
    while heart._due == due:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.001)
    heart.stop()
    assert heart._timer is not None
    assert heart._timer.cancelled()
    assert heart.late == 0.0
