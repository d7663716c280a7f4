"""A link that is down is told of: each hour, and when it is back."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.app.uplink.link_lines import REMINDER_SECONDS, LinkLines
from tests.support.clocks import NOW, ManualClock


class Rig:
    """What the lines look at, set by the test."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.uplink = SimpleNamespace(name="", state="connecting", error="")
        self.outbox = SimpleNamespace(
            oldest_time=None, uplinks=SimpleNamespace(names=("",), rows=[0], several=False)
        )
        gateway: Any = SimpleNamespace(clock=self.clock)
        self.lines = LinkLines(gateway, cast("Any", self.uplink), cast("Any", self.outbox))

    def now(self, state: str, after: float = 0.0) -> None:
        self.clock.step(after)
        self.uplink.state = state
        self.lines.look()


@pytest.fixture
def rig(caplog: pytest.LogCaptureFixture) -> Rig:
    caplog.set_level(logging.INFO, "gateway.app.uplink.link_lines")
    return Rig()


def test_a_link_that_is_up_at_once_is_not_worth_a_line(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.now("connected", 0.3)
    rig.now("connected", 10_000)
    assert caplog.messages == []


def test_a_link_that_is_back_says_how_long_it_was_away_and_how_many_wait(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.now("connected", 0.3)
    rig.now("disconnected")
    rig.outbox.uplinks.rows[0], rig.outbox.oldest_time = 3204, NOW + 60_300
    rig.now("connecting", 700)
    rig.now("connected", 20)
    assert caplog.messages == [
        "uplink: was down for 12.0 min; 3,204 messages wait, the oldest for 11.0 min"
    ]


def test_each_hour_somebody_is_reminded(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.uplink.error = "no route to host"
    rig.now("disconnected", REMINDER_SECONDS - 1)
    assert caplog.messages == []
    rig.now("disconnected", 1)
    rig.now("paused", REMINDER_SECONDS)
    assert caplog.messages == [
        "uplink: disconnected for 60.0 min (no route to host); no message waits",
        "uplink: paused for 2.0 h (no route to host); no message waits",
    ]


def test_nobody_is_reminded_of_a_schedule(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.now("waiting", 10 * REMINDER_SECONDS)
    assert caplog.messages == []
