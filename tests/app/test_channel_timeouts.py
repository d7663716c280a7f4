from types import SimpleNamespace
from typing import Any

import pytest

from gateway.app.channel_timeouts import QUIET_SECONDS, ChannelTimeouts
from gateway.mqtt.packets import PubAck
from tests.support.broker.channel_harness import TIMEOUT, channel_of, consumer, durable, publish

STAY = "stay with their consumer, since no other can have them"


@pytest.mark.parametrize(
    ("fields", "workers", "end"),
    [
        ({}, 1, STAY),
        ({}, 3, "are dropped after attempt 20"),
        ({"dead_letter_topic": "dead"}, 1, "go to dead after attempt 20"),
        ({"max_attempts": 0}, 1, STAY),
        ({"max_attempts": 0}, 3, "are delivered without end"),
    ],
)
def test_messages_that_time_out_again_and_again_raise_an_alarm_with_one_line(
    fields: dict[str, Any], workers: int, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness = durable(**fields)
    raised: list[tuple[str, str]] = []
    clock = SimpleNamespace(monotonic=lambda: harness.now)
    run: Any = SimpleNamespace(clock=clock, alarm=lambda *each: raised.append(each))
    timeouts = ChannelTimeouts(run, harness.broker.channels)
    clients = [consumer(harness, f"worker{each}") for each in range(workers)]
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    timeouts.check()
    assert raised == []
    harness.pass_time(TIMEOUT)
    timeouts.check()
    ((name, text),) = raised
    assert (name, end in text) == ("channel_timeouts", True)
    for _ in range(2):
        harness.pass_time(TIMEOUT)
        timeouts.check()
    stays = STAY if workers > 1 else end  # every other one has had it by now
    assert stays in raised[-1][1]
    assert caplog.text.count("repeatedly time out") == 1
    for each in clients:
        each.send(PubAck(1))
    harness.pass_time(QUIET_SECONDS)
    timeouts.check()
    assert raised[-1] == ("channel_timeouts", "")


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
