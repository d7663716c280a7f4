from types import SimpleNamespace
from typing import Any

import pytest

from gateway.app.channel_timeouts import QUIET_SECONDS, ChannelTimeouts
from gateway.mqtt.packets import PubAck
from tests.support.broker.channel_harness import TIMEOUT, channel_of, consumer, durable, publish


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({}, "are dropped after attempt 20"),
        ({"dead_letter_topic": "dead"}, "go to dead after attempt 20"),
        ({"max_attempts": 0}, "are delivered without end"),
    ],
)
def test_messages_that_time_out_again_and_again_raise_an_alarm_with_one_line(
    fields: dict[str, Any], end: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness = durable(**fields)
    raised: list[tuple[str, str]] = []
    clock = SimpleNamespace(monotonic=lambda: harness.now)
    run: Any = SimpleNamespace(clock=clock, alarm=lambda *each: raised.append(each))
    timeouts = ChannelTimeouts(run, harness.broker.channels)
    worker = consumer(harness, "worker")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    timeouts.check()
    assert raised == []
    for _ in range(3):
        harness.pass_time(TIMEOUT)
        timeouts.check()
    ((name, text),) = raised
    assert (name, end in text) == ("channel_timeouts", True)
    assert caplog.text.count("again and again") == 1
    worker.send(PubAck(1))
    harness.pass_time(QUIET_SECONDS)
    timeouts.check()
    assert raised[1:] == [("channel_timeouts", "")]


def test_the_alarm_ends_with_its_channel() -> None:
    harness = durable()
    raised: list[str] = []
    clock = SimpleNamespace(monotonic=lambda: harness.now)
    run: Any = SimpleNamespace(clock=clock, alarm=lambda _, text: raised.append(text))
    timeouts = ChannelTimeouts(run, harness.broker.channels)
    consumer(harness, "worker")
    publish(harness, "x")
    for _ in range(2):
        harness.pass_time(TIMEOUT)
    timeouts.check()
    harness.broker.channels.delete(channel_of(harness))
    timeouts.check()
    assert raised[1:] == [""]
