"""A client that is accepted: in its version, with its client identifier, told of the limits."""

import pytest

from gateway.mqtt.packets import ConnAck, Connect, PingReq, PingResp
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.versions import VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_is_accepted_in_its_own_version(harness: Harness, version: int) -> None:
    client = harness.connect("c", version)
    assert not client.connack.session_present
    client.send(PingReq())
    assert client.take() == [PingResp()]


def test_mqtt_5_is_told_the_limits_and_that_where_is_understood() -> None:
    harness = Harness(
        BrokerSettings(maximum_packet_size=5_000, topic_alias_maximum=3, receive_maximum=20)
    )
    assert harness.connect().connack.properties == Properties(
        receive_maximum=20,
        maximum_packet_size=5_000,
        topic_alias_maximum=3,
        user_properties=(("$where", "1"),),
    )


@pytest.mark.parametrize(
    ("configured", "asked", "expected"),
    [("answers/", 1, "answers/"), ("answers/", 0, None), ("answers/", None, None), (None, 1, None)],
)
def test_response_information_is_told_to_those_who_ask(
    configured: str | None, asked: int | None, expected: str | None
) -> None:
    harness = Harness(BrokerSettings(response_information=configured))
    client = harness.open()
    client.send(Connect("c", properties=Properties(request_response_information=asked)))
    (connack,) = client.take()
    assert isinstance(connack, ConnAck)
    assert connack.properties.response_information == expected


def test_without_topic_aliases_there_is_no_topic_alias_maximum() -> None:
    harness = Harness(BrokerSettings(topic_alias_maximum=0))
    assert harness.connect().connack.properties.topic_alias_maximum is None


def test_an_empty_client_identifier_is_assigned_in_mqtt_5(harness: Harness) -> None:
    first, second = harness.connect(""), harness.connect("")
    assert first.connack.properties.assigned_client_identifier == "assigned-1"
    assert second.connack.properties.assigned_client_identifier == "assigned-2"
    assert set(harness.broker.clients) == {"assigned-1", "assigned-2"}
    assert harness.connect("c").connack.properties.assigned_client_identifier is None
