"""Whether a client finds its session, and what becomes of who had it before."""

import pytest

from gateway.mqtt.packets import MQTT_3_1, MQTT_5, Disconnect, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness
from tests.support.versions import VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("resumed", [True, False])
def test_session_present_says_whether_the_session_goes_on(
    harness: Harness, version: int, *, resumed: bool
) -> None:
    first = harness.persistent("c", version)
    assert not first.connack.session_present
    first.subscribe("a")
    first.drop()
    second = harness.persistent("c", version, clean_start=not resumed)
    # MQTT 3.1 has no such flag
    assert second.connack.session_present == (resumed and version != MQTT_3_1)
    harness.publish("a")
    assert bool(second.take()) == resumed


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_session_ends_with_its_connection(harness: Harness, version: int) -> None:
    harness.connect("c", version).drop()
    assert not harness.broker.sessions
    assert not harness.persistent("c", version).connack.session_present


def test_mqtt_5_without_an_expiry_interval_ends_with_its_connection(harness: Harness) -> None:
    harness.connect("c", clean_start=False).drop()
    assert not harness.broker.sessions


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_takes_over_its_own_session(harness: Harness, version: int) -> None:
    first = harness.persistent("c", version)
    first.subscribe("a")
    second = harness.persistent("c", version)
    assert second.connack.session_present == (version != MQTT_3_1)
    assert first.closed()
    if version == MQTT_5:
        (disconnect,) = first.take()
        assert isinstance(disconnect, Disconnect)
        assert disconnect.reason_code == ReasonCode.SESSION_TAKEN_OVER
    else:
        assert not first.take()
    harness.publish("a")
    assert second.take() == [Publish("a", b"x")]
    assert list(harness.broker.clients) == ["c"]


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
