"""Sessions expire by the wall clock, as far as it can be trusted, also while nothing runs."""

import pytest

from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.packets import MQTT_3_1_1, Publish, Will
from gateway.mqtt.properties import Properties
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.payloads import payloads

WILL = Will("w", b"gone", 1, properties=Properties(will_delay_interval=60))


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness()


def test_a_session_expires_by_the_wall_clock_while_the_gateway_is_down(
    harness: DurableHarness,
) -> None:
    away(harness)
    harness.reboot(3599)
    harness.pass_time(0)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions
    assert harness.disk.count("session") == 0


def test_a_session_that_was_connected_expires_from_the_restart_on(harness: DurableHarness) -> None:
    harness.persistent()
    harness.reboot(1_000_000)
    harness.pass_time(3599)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions


def test_a_wall_clock_that_was_set_back_expires_nothing(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("t", b"x", 1, message_expiry=100)
    harness.reboot(-1_000_000_000)
    harness.pass_time(99)
    assert payloads(harness.persistent().take()) == [b"x"]


def test_a_clock_that_finds_the_time_expires_nothing(harness: DurableHarness) -> None:
    away(harness)
    harness.persistent("w", will=WILL).drop()
    harness.publish("t", b"x", 1, message_expiry=1_000)
    harness.publish("r", b"x", 1, retain=True, message_expiry=1_000)
    harness.publish("t", b"for ever", 1)
    times = "SELECT time FROM message WHERE message_expiry IS NULL"
    before = harness.disk.connection.execute(times).fetchone()
    harness.set_clock(1_000_000_000)
    assert harness.disk.connection.execute(times).fetchone() == before
    harness.reboot(20)  # 40 s in all
    assert harness.disk.count("will") == 1
    assert len(harness.broker.retained) == 1
    packets = [packet for packet in harness.persistent().take() if isinstance(packet, Publish)]
    assert [packet.payload for packet in packets] == [b"x", b"for ever"]
    assert packets[0].properties.message_expiry_interval == 960


@pytest.mark.parametrize("seconds", [-1_000, 0, 0.9])
def test_a_clock_that_is_set_back_or_hardly_at_all_rewrites_nothing(
    harness: DurableHarness, seconds: float
) -> None:
    away(harness)
    disconnected_at = "SELECT left_at FROM session"
    before = harness.disk.connection.execute(disconnected_at).fetchone()
    harness.set_clock(seconds)
    assert harness.disk.connection.execute(disconnected_at).fetchone() == before


def test_a_session_that_was_left_before_the_clock_was_set_begins_anew(
    harness: DurableHarness,
) -> None:
    harness.wall = 20_000
    away(harness)
    harness.reboot(1_763_740_000)
    harness.pass_time(3599)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions


def test_a_session_for_ever_has_no_deadline(harness: DurableHarness) -> None:
    client = harness.connect("c", MQTT_3_1_1, clean_start=False, info=ConnectionInfo(username="u"))
    client.subscribe("t", 1)
    harness.reboot(10**9)
    harness.pass_time(10**9)
    assert "c" in harness.broker.sessions
