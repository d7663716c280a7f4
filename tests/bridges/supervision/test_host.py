"""A bridge's side of the gateway: two sources of one topic are noticed."""

import pytest

from tests.support.clocks import NOW, ManualClock
from tests.support.nodes.bridges import Gateway


def test_two_bridges_with_one_node_are_told_and_counted(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = Gateway.make(clock)
    one, other = gateway.host(name="one"), gateway.host(name="other")
    for host in (one, one, other, one):
        host.read("n1", "temperature", 21.5)
        host.read("n1" if host is one else "n2", "humidity", 40)
    assert gateway.figure("test/node_conflicts") == 2
    assert "test other: sensors/n1/temperature came from test one before" in caplog.text
    assert len(gateway.broker.messages) == 8


def test_what_cannot_be_a_reading_is_counted_and_nothing_is_raised(clock: ManualClock) -> None:
    gateway = Gateway.make(clock)
    host = gateway.host()
    for value in (float("inf"), float("nan"), "\ud800"):
        assert not host.read("n1", "x", value)
    assert not host.read("a/b", "x", 1)
    assert not host.read("n1", "", 1)
    assert host.read("n1", "x", 1, time=10**30) is False
    assert gateway.figure("test/rejected") == 6
    for time in (0, 4_102_444_800_000):
        assert host.read("n1", "x", 1, time=time)
    assert [fields["time"] for _, fields in gateway.broker.readings] == [NOW, NOW]
    assert gateway.figure("test/clock_errors") == 2
