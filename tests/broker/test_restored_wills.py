"""Wills of clients that were connected at a crash."""

import pytest

from gateway.broker.restore import WILL_GRACE
from gateway.mqtt.packets import Publish, Will
from gateway.mqtt.properties import Properties
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.payloads import payloads


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness()


WILL = Will("w", b"gone", 1, properties=Properties(content_type="a", user_properties=(("k", "v"),)))


DELAYED = Will("w", b"gone", 1, properties=Properties(will_delay_interval=60))


def test_a_will_is_published_once_after_a_restart(harness: DurableHarness) -> None:
    away(harness, "w", name="watcher")
    harness.connect("c", will=WILL, username="u")
    harness.crash()
    harness.pass_time(WILL_GRACE - 0.1)
    assert harness.disk.count("will") == 1
    harness.pass_time(0.1)
    assert harness.disk.count("will") == 0
    harness.crash()
    harness.pass_time(WILL_GRACE)
    (message,) = harness.persistent("watcher").take()
    assert isinstance(message, Publish)
    assert message.properties.content_type == "a"
    assert message.properties.user_properties == (("k", "v"),)
    assert list(harness.broker.sessions) == ["watcher"]


@pytest.mark.parametrize("clean_start", [True, False])
def test_a_will_is_not_published_if_its_client_comes_back(
    harness: DurableHarness, clean_start: bool
) -> None:
    away(harness, "w", name="watcher")
    harness.connect("c", will=WILL)
    harness.crash()
    client = harness.connect("c", clean_start=clean_start)
    assert not client.connack.session_present
    harness.pass_time(60)
    assert payloads(harness.persistent("watcher").take()) == []
    assert harness.disk.count("will") == 0


@pytest.mark.parametrize(
    ("will", "dropped", "down", "due"),
    [
        (WILL, False, 1, WILL_GRACE),
        (DELAYED, False, 1, 60),  # it was connected to the end
        (DELAYED, True, 20, 40),
        (DELAYED, True, 100, WILL_GRACE),
        (DELAYED, True, -10_000, 60),  # the clock was set back
    ],
)
def test_a_will_of_a_session_that_stays_keeps_its_deadline(
    harness: DurableHarness, will: Will, dropped: bool, down: int, due: float
) -> None:
    away(harness, "w", name="watcher")
    client = harness.persistent("c", will=will)
    if dropped:
        client.drop()
    harness.reboot(down)
    harness.pass_time(due - 0.1)
    assert harness.disk.count("will") == 1
    harness.pass_time(0.1)
    assert harness.disk.count("will") == 0
    assert payloads(harness.persistent("watcher").take()) == [b"gone"]
