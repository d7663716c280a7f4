import pytest

from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.incoming import IDENTIFIER_OVERHEAD
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.broker.publishing import subscriber

VERSIONS = (MQTT_3_1_1, MQTT_5)


@pytest.mark.parametrize(
    ("publish", "code"),
    [
        (Publish("", b"2", properties=Properties(topic_alias=3)), ReasonCode.PROTOCOL_ERROR),
        (Publish("a", properties=Properties(topic_alias=17)), ReasonCode.TOPIC_ALIAS_INVALID),
        (Publish("a/+"), ReasonCode.TOPIC_NAME_INVALID),
        (
            Publish("a", properties=Properties(subscription_identifiers=(1,))),
            ReasonCode.PROTOCOL_ERROR,
        ),
    ],
    ids=["unset alias", "alias too large", "wildcard", "subscription identifier"],
)
def test_what_cannot_be_published_closes_the_connection(
    harness: Harness, publish: Publish, code: ReasonCode
) -> None:
    receiver, publisher = subscriber(harness), harness.connect("p")
    publisher.send(publish)
    assert publisher.take_only(Disconnect).reason_code == code
    assert publisher.closed()
    assert not receiver.take()


def test_a_command_can_be_published(harness: Harness) -> None:
    control = Inline("$CONTROL")
    harness.broker.subscribe_inline(control, ["$CONTROL/tidegate/#"])
    client = harness.connect(info=ConnectionInfo(local=True))
    client.send(Publish("$CONTROL/tidegate/uplink", b"pause", 1, packet_id=1))
    assert client.take() == [PubAck(1)]
    assert [message.payload for message in control.taken] == [b"pause"]


def test_the_message_says_who_published_it_and_when(harness: Harness) -> None:
    inline = Inline()
    harness.broker.subscribe_inline(inline, ["#"])
    client = harness.connect("p", username="anna")
    properties = Properties(message_expiry_interval=60, content_type="a/b")
    client.send(Publish("a", b"x", 1, retain=True, packet_id=1, properties=properties))
    (message,) = inline.taken
    assert (message.topic, message.payload, message.qos, message.retain) == ("a", b"x", 1, True)
    assert (message.client_id, message.username) == ("p", "anna")
    assert (message.received_at, message.arrived) == (harness.wall, harness.now)
    assert (message.message_expiry, message.content_type) == (60, "a/b")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_leaves_only_so_many_qos_2_messages_unreleased(
    harness: Harness, version: int
) -> None:
    receiver = subscriber(harness)
    publisher = harness.persistent("p", version)
    harness.session("p").incoming.maximum = 2
    publisher.send(*(Publish("a", b"%d" % number, 2, packet_id=number) for number in (1, 2)))
    publisher.send(Publish("a", b"2", 2, dup=True, packet_id=2))
    assert publisher.take() == [PubRec(1), PubRec(2), PubRec(2)]
    publisher.send(Publish("a", b"3", 2, packet_id=3))
    assert harness.counters.count("tidegate/refused/incoming") == 1
    if version == MQTT_5:
        assert publisher.take() == [PubRec(3, ReasonCode.QUOTA_EXCEEDED)]
        publisher.send(PubRel(1), Publish("a", b"3", 2, packet_id=3))
        assert publisher.take() == [PubComp(1), PubRec(3)]
        assert len(receiver.take()) == 3
    else:
        assert publisher.closed()
        assert not publisher.take()
        assert len(receiver.take()) == 2


def test_by_default_a_client_can_leave_a_window_behind_and_fill_another() -> None:
    harness = Harness(BrokerSettings(receive_maximum=20_000))
    harness.connect("p")
    assert harness.session("p").incoming.maximum == 40_000


def test_what_a_session_has_taken_counts_as_memory_until_it_ends(harness: Harness) -> None:
    publisher = harness.persistent("p")
    publisher.send(*(Publish("a", b"", 2, packet_id=number) for number in (1, 2, 3)), PubRel(2))
    assert harness.broker.queue_memory.bytes == 2 * IDENTIFIER_OVERHEAD
    publisher.drop()
    harness.connect("p")
    assert harness.broker.queue_memory.bytes == 0
