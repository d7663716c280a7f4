import pytest

from gateway.broker.stage import session_of
from gateway.mqtt.errors import ProtocolError
from tests.support.broker_harness import Harness


def test_before_connect_there_is_no_session(harness: Harness) -> None:
    with pytest.raises(ProtocolError, match="the first packet is not CONNECT"):
        session_of(harness.open().client)


def test_after_connect_there_is_one(harness: Harness) -> None:
    assert session_of(harness.connect().client) is harness.session()
