"""An outbox without room is told of: an alarm, a log line and /healthz, at its begin and end."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.gateway import Gateway
from gateway.app.start import start
from gateway.app.uplink.full_outbox import QUIET_SECONDS, FullOutbox
from gateway.config.load import load
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import Outcome
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
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
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    more: str,
    code: ReasonCode,
    said: str,
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
        await start(gateway, durable=True)
        [outbox] = outboxes
        full = FullOutbox(gateway, outbox)
        alarms: list[tuple[str, str]] = []
        gateway.telemetry.alarm = lambda name, text: alarms.append((name, text))

        def publish() -> ReasonCode:
            return gateway.publish(Message("sensors/a", b"1", qos=1))

        assert [publish() for _ in range(2)] == [ReasonCode.SUCCESS] * 2
        full.look()
        assert not alarms
        assert publish() in (code, ReasonCode.NO_MATCHING_SUBSCRIBERS)
        full.look()
        text = f"the outbox is full: {said}"
        assert alarms == [("outbox_full", text)]
        assert full.text == text
        clock.step(QUIET_SECONDS + 1)
        full.look()
        assert len(alarms) == 1, "there is no room yet"
        outbox.end_turn()
        await until(lambda: outbox.committed_id == 2)
        outbox.remove(await outbox.fetch(0, 1), Outcome.DELIVERED)
        full.look()
        assert alarms[1:] == [("outbox_full", "")]
        assert not full.text
    lines = [record.message for record in caplog.records if "outbox" in record.message]
    assert lines == [text, "the outbox has room again: meanwhile it had none for 1 messages"]
