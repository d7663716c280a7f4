import pytest

from gateway.mqtt.packets import Disconnect, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness

WILL = Will("wills/c", b"gone")


@pytest.mark.parametrize(
    "code", [ReasonCode.DISCONNECT_WITH_WILL_MESSAGE, ReasonCode.UNSPECIFIED_ERROR]
)
def test_any_other_disconnect_keeps_the_will(harness: Harness, code: ReasonCode) -> None:
    watcher = harness.connect("watcher")
    watcher.subscribe("wills/+")
    client = harness.connect(will=WILL)
    client.send(Disconnect(code))
    assert client.closed()
    assert watcher.take() == [Publish("wills/c", b"gone")]


def test_a_disconnect_cannot_make_a_session_outlive_that_was_not_to(harness: Harness) -> None:
    client = harness.connect()
    client.send(Disconnect(properties=Properties(session_expiry_interval=20)))
    assert client.take_only(Disconnect).reason_code == ReasonCode.PROTOCOL_ERROR
    assert not harness.broker.sessions
