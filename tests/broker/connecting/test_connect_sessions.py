"""Whether a client finds its session, and what becomes of who had it before."""

from gateway.mqtt.packets import Disconnect
from tests.support.broker.broker_harness import Harness


def test_a_take_over_with_clean_start_ends_the_old_session(harness: Harness) -> None:
    harness.persistent().subscribe("a")
    second = harness.persistent(clean_start=True)
    assert not second.connack.session_present
    harness.publish("a")
    assert not second.take()
    assert len(harness.broker.router) == 0


def test_a_take_over_of_a_connection_that_is_closing_already(harness: Harness) -> None:
    first = harness.persistent()
    first.reads = False
    first.send(Disconnect())
    second = harness.persistent()
    assert second.connack.session_present
    first.reads = True
    harness.settle()
    assert first.closed()
    assert not first.take()
    assert list(harness.broker.clients) == ["c"]
