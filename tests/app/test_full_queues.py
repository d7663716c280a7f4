"""Who loses messages for not fetching them is told of: an alarm and log lines, few of them."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.full_queues import LINE_SECONDS, NAMED, QUIET_SECONDS, FullQueues
from gateway.config.load import load
from gateway.session.queue.memory import MAXIMUM_NAMED
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import away
from tests.support.clocks import ManualClock
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

BEGIN = "messages are dropped for clients that do not fetch them: "


async def test_the_alarm_names_who_loses_most_and_ends_with_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f"[[listener]]\nport = {free_port()}\n")
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        clock = gateway.clock = ManualClock()
        await gateway.start(durable=False)
        alarms: list[str] = []
        gateway.alarm.publish(lambda name, text: alarms.append(f"{name}:{text}"))
        harness = Harness(BrokerSettings(maximum_queued_messages=1))
        full = FullQueues(gateway, harness.broker)
        for name in ("a", "b"):
            away(harness, name, name)
        full.check()
        assert not alarms

        def lose(topic: str, count: int) -> None:
            for _ in range(count):
                harness.publish(topic, qos=1)
            full.check()

        lose("a", 3)
        assert alarms == [f"queue_full:{BEGIN}'a' (2)"]
        lose("a", 1)
        assert len(alarms) == 1, "nothing new to tell"
        lose("b", 6)
        assert alarms[1:] == [f"queue_full:{BEGIN}'b' (5), 'a' (3)"]
        clock.step(LINE_SECONDS)
        lose("a", 1_000)
        assert alarms[2:] == [f"queue_full:{BEGIN}'a' (1,003), 'b' (5)"]
        clock.step(QUIET_SECONDS)
        full.check()
        assert len(alarms) == 3, "they have no room yet"
        harness.session("a").queue.pop(1)
        harness.persistent("b", clean_start=True)
        full.check()
        assert alarms[3:] == ["queue_full:"]
        assert not full.text
        harness.broker.queue_memory.dropped = {f"{number:04}": 1 for number in range(MAXIMUM_NAMED)}
        full.check()
        harness.broker.queue_memory.dropped = {"one more": 1}
        full.check()
        names = ", ".join(f"'{number:04}' (1)" for number in range(NAMED))
        assert alarms[4:] == [f"queue_full:{BEGIN}{names} and 995 others"]
    lines = [record.message for record in caplog.records if "dropped" in record.message]
    assert lines == [
        f"{BEGIN}'a' (2)",
        f"{BEGIN}'a' (1,003), 'b' (5)",
        "queues have capacity again: meanwhile 1008 messages were dropped for 2 clients",
        f"{BEGIN}{names} and 995 others",
    ]
