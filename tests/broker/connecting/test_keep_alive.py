"""Clients that say nothing."""

import pytest

from gateway.mqtt.packets import MQTT_5, Disconnect, PingReq, PingResp
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness
from tests.support.versions import VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_keep_alive_allows_one_and_a_half_intervals_of_silence(
    harness: Harness, version: int
) -> None:
    client = harness.connect("c", version, keep_alive=10)
    harness.pass_time(14)
    client.send(PingReq())
    assert client.take() == [PingResp()]
    harness.pass_time(14.9)
    assert not client.closed()
    harness.pass_time(0.1)
    assert client.closed()
    if version == MQTT_5:
        assert client.take_only(Disconnect).reason_code == ReasonCode.KEEP_ALIVE_TIMEOUT
    else:
        assert not client.take()


@pytest.mark.uncovered
def test_a_keep_alive_does_not_outlive_its_connection(harness: Harness) -> None:
    """A client that comes and goes leaves no deadline behind, whatever it asked for."""
    for number in range(1_000):
        client = harness.connect("c", keep_alive=65_535, session_expiry=0xFFFFFFFE - number)
        client.drop()
    assert len(harness.broker.deadlines) < 150
