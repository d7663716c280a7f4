"""Alarms, figures and log lines about a full outbox, an outage, and a link that is down."""

import logging
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.app.parts import Happening, Happenings, Stage
from gateway.app.uplink.monitoring import (
    QUIET_SECONDS,
    REMINDER_SECONDS,
    WORTH_TELLING,
    FullOutbox,
    LinkLines,
    Outage,
)
from gateway.config.load import load
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.bounds import for_rows
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import Outcome
from tests.support.clocks import NOW, ManualClock
from tests.support.disk.storage import outbox_row, until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

SETTINGS = """
[[listener]]
port = {port}
[outbox]
maximum_messages = 2
{more}
[uplink]
url = "mqtt://127.0.0.1:{nobody}"
[[uplink.rule]]
topic = "sensors/#"
"""


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("", ReasonCode.SUCCESS, "local subscribers still get what the fleet will not"),
        ('when_full = "reject"', ReasonCode.QUOTA_EXCEEDED, "publishers are refused"),
    ],
)
async def test_the_alarm_is_raised_and_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: str, code: ReasonCode, said: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(SETTINGS.format(port=free_port(), nobody=free_port(), more=more))
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        clock = gateway.clock = ManualClock()
        outboxes: list[Outbox] = []
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(
            FullOutbox, "start", lambda self: outboxes.append(self._outbox)
        )
        await gateway.start()
        [outbox] = outboxes
        full = FullOutbox(gateway, outbox)
        alarms: list[tuple[str, str]] = []
        gateway.alarm.publish(lambda name, text: alarms.append((name, text)))

        def publish() -> ReasonCode:
            return gateway.publish(Message("sensors/a", b"1", qos=1))

        assert [publish() for _ in range(2)] == [ReasonCode.SUCCESS] * 2
        full.check()
        assert not alarms
        assert publish() in (code, ReasonCode.NO_MATCHING_SUBSCRIBERS)
        full.check()
        text = f"the outbox is full: {said}"
        assert alarms == [("outbox_full", text)]
        assert full.text == text
        clock.step(QUIET_SECONDS + 1)
        full.check()
        assert len(alarms) == 1, "it is still full"
        outbox.end_turn()
        await until(lambda: outbox.writes.committed_id == 2)
        outbox.remove(await outbox.fetch(0, 1), Outcome.DELIVERED)
        full.check()
        assert alarms[1:] == [("outbox_full", "")]
        assert not full.text
    lines = [record.message for record in caplog.records if "outbox" in record.message]
    assert lines == [text, "the outbox accepts messages again: meanwhile 1 did not fit"]


class Rig:
    """What the lines look at, set by the test."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.uplink = SimpleNamespace(name="", state="connecting", error="")
        self.outbox = SimpleNamespace(
            oldest=SimpleNamespace(time=None),
            uplinks=SimpleNamespace(names=("",), rows=[0], several=False),
        )
        self.reported: list[Happening] = []
        event = Happenings()
        event.listen(self.reported.append)
        gateway: Any = SimpleNamespace(clock=self.clock, event=event)
        self.lines = LinkLines(gateway, cast("Any", self.uplink), cast("Any", self.outbox))

    def now(self, state: str, after: float = 0.0) -> None:
        self.clock.step(after)
        self.uplink.state = state
        self.lines.check()


@pytest.fixture
def rig(caplog: pytest.LogCaptureFixture) -> Rig:
    caplog.set_level(logging.INFO, "gateway.app.uplink.monitoring")
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
    rig.outbox.uplinks.rows[0], rig.outbox.oldest.time = 3204, NOW + 60_300
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


QUOTA = for_rows(64 * 1024 * 1024)

OUTAGE_SETTINGS = """
[[listener]]
port = {port}
[outbox]
maximum_bytes = "64MiB"
survive = "10h"
expected_rate = 1
expected_bytes = 200
[uplink]
"""


async def test_the_figures_follow_the_load(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(OUTAGE_SETTINGS.format(port=free_port()))
    alarms: list[tuple[str, str]] = []
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        clock = gateway.clock = ManualClock()
        await gateway.start()
        gateway.alarm.publish(lambda name, text: alarms.append((name, text)))
        counters = gateway.counters
        outbox = Outbox(gateway.database, gateway.writer, counters)
        outage = Outage(gateway, gateway.database, outbox)

        outage.check()  # nothing is known yet
        assert "tidegate/outbox/survives_seconds" not in counters.values

        clock.step(10.0)
        for number in range(1, 21):
            outbox.add(outbox_row(number, payload=bytes(200)))
        counters.add("tidegate/rules/accepted", 20)
        outage.check()
        row = outbox.bounds.bytes / 20
        expected = (QUOTA - outbox.bounds.bytes) / (2 * row)
        survived = counters.count("tidegate/outbox/survives_seconds")
        assert survived == pytest.approx(expected, abs=1)
        assert "tidegate/outbox/drains_seconds" not in counters.values  # nothing went up yet

        clock.step(10.0)
        counters.add("tidegate/rules/accepted", 20)
        counters.add("tidegate/uplink/acknowledged", 1_000)
        outage.check()
        survived = counters.count("tidegate/outbox/survives_seconds")
        drained = counters.count("tidegate/outbox/drains_seconds")
        assert drained == pytest.approx((20 + 2 * survived) / (100 - 2), rel=0.01)
        assert alarms == []

        # far more comes than was promised for; then nothing any more
        for _ in range(60):
            clock.step(10.0)
            counters.add("tidegate/rules/accepted", 100)
            outage.check()
        assert counters.count("tidegate/outbox/survives_seconds") < 10 * 3600
        (name, text), *more = alarms
        assert (name, more) == ("headroom", [])
        assert "`survive` requires 10.0 h" in text
        for _ in range(600):
            clock.step(10.0)
            outage.check()
        assert alarms[1:] == [("headroom", "")]
        assert counters.count("tidegate/outbox/survives_seconds") > 10 * 3600


def test_a_link_that_is_down_is_an_event_until_it_is_back(rig: Rig) -> None:
    rig.now("connected", 0.3)
    rig.now("disconnected")
    rig.now("disconnected", WORTH_TELLING - 1)
    assert {each.stage for each in rig.reported} == {Stage.ENDS}  # of what had not begun
    rig.reported.clear()
    rig.uplink.error = "refused"
    rig.now("disconnected", 2)
    rig.now("paused", 100)
    rig.now("connected", 1)
    assert [(each.stage, each.subject, each.text) for each in rig.reported] == [
        (Stage.BEGINS, "uplink", "disconnected (refused)"),
        (Stage.ENDS, "uplink", "is back"),
    ]
