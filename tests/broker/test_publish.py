import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.incoming import IDENTIFIER_OVERHEAD
from tests.support.broker_harness import Harness
from tests.support.inline import Inline
from tests.support.publishing import subscriber

NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS
VERSIONS = (MQTT_3_1_1, MQTT_5)

EVERYTHING = Properties(
    payload_format_indicator=1,
    content_type="text/plain",
    response_topic="answers",
    correlation_data=b"\x00\xff",
    user_properties=(("site", "A"), ("$where", "x = 1"), ("site", "B")),
)


def test_qos_0_is_not_answered(harness: Harness) -> None:
    receiver, publisher = subscriber(harness), harness.connect("p")
    publisher.send(Publish("a", b"1"), PingReq())
    assert publisher.take() == [PingResp()]
    assert receiver.take() == [Publish("a", b"1")]


@pytest.mark.parametrize("version", VERSIONS)
def test_qos_1(harness: Harness, version: int) -> None:
    receiver, publisher = subscriber(harness), harness.connect("p", version)
    publisher.send(Publish("a", b"1", 1, packet_id=9))
    assert publisher.take() == [PubAck(9)]
    assert receiver.take() == [Publish("a", b"1", 1, packet_id=1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_qos_2(harness: Harness, version: int) -> None:
    receiver, publisher = subscriber(harness), harness.connect("p", version)
    publisher.send(Publish("a", b"1", 2, packet_id=9))
    assert publisher.take() == [PubRec(9)]
    publisher.send(Publish("a", b"1", 2, dup=True, packet_id=9))
    assert publisher.take() == [PubRec(9)]
    publisher.send(PubRel(9))
    assert publisher.take() == [PubComp(9)]
    publisher.send(Publish("a", b"2", 2, packet_id=9))
    assert publisher.take() == [PubRec(9)]
    payloads = [packet.payload for packet in receiver.take() if isinstance(packet, Publish)]
    assert payloads == [b"1", b"2"]


def test_qos_2_is_not_doubled_by_a_new_connection(harness: Harness) -> None:
    receiver = subscriber(harness)
    first = harness.persistent("p")
    first.send(Publish("a", b"1", 2, packet_id=9))
    first.drop()
    again = harness.persistent("p")
    again.send(Publish("a", b"1", 2, dup=True, packet_id=9), PubRel(9))
    assert again.take() == [PubRec(9), PubComp(9)]
    assert len(receiver.take()) == 1


def test_pubrel_for_an_unknown_packet_identifier(harness: Harness) -> None:
    client = harness.connect()
    client.send(PubRel(5))
    assert client.take() == [PubComp(5, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publisher_is_told_that_nobody_subscribed(harness: Harness, qos: int) -> None:
    client = harness.connect()
    client.send(Publish("a", qos=qos, packet_id=1))
    assert client.take() == [(PubAck if qos == 1 else PubRec)(1, NOBODY)]


def test_a_message_arrives_as_it_was_published(harness: Harness) -> None:
    receiver = subscriber(harness)
    harness.connect("p").send(Publish("a", b"x", properties=EVERYTHING))
    assert receiver.take() == [Publish("a", b"x", properties=EVERYTHING)]


def test_mqtt_3_1_1_gets_the_message_without_properties(harness: Harness) -> None:
    receiver = subscriber(harness, MQTT_3_1_1)
    harness.connect("p").send(Publish("a", b"x", properties=EVERYTHING))
    assert receiver.take() == [Publish("a", b"x")]


def test_a_topic_alias_is_resolved_and_not_passed_on(harness: Harness) -> None:
    receiver, publisher = subscriber(harness), harness.connect("p")
    alias = Properties(topic_alias=3)
    publisher.send(Publish("a/b", b"1", properties=alias), Publish("", b"2", properties=alias))
    assert receiver.take() == [Publish("a/b", b"1"), Publish("a/b", b"2")]


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
    (disconnect,) = publisher.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == code
    assert publisher.closed()
    assert not receiver.take()


@pytest.mark.parametrize("topic", ["$SYS/broker/uptime", "$other", "$share/g/a"])
def test_topics_of_the_gateways_own_are_not_writable(harness: Harness, topic: str) -> None:
    receiver = subscriber(harness)
    receiver.subscribe(topic)
    publisher = harness.connect("p")
    publisher.send(
        Publish(topic), Publish(topic, qos=1, packet_id=1), Publish(topic, qos=2, packet_id=2)
    )
    refused = ReasonCode.NOT_AUTHORIZED
    assert publisher.take() == [PubAck(1, refused), PubRec(2, refused)]
    assert not receiver.take()
    assert harness.counters.count("tidegate/clients/not_authorized") == 3


def test_mqtt_3_1_1_is_acknowledged_and_its_message_dropped(harness: Harness) -> None:
    receiver = subscriber(harness)
    receiver.subscribe("$SYS/#")
    publisher = harness.connect("p", MQTT_3_1_1)
    publisher.send(
        Publish("$SYS/x", qos=1, packet_id=1), Publish("$SYS/x", qos=2, packet_id=2), PubRel(2)
    )
    assert publisher.take() == [PubAck(1), PubRec(2), PubComp(2)]
    assert not receiver.take()
    assert harness.counters.count("tidegate/clients/not_authorized") == 2


def test_a_command_can_be_published(harness: Harness) -> None:
    control = Inline("$CONTROL")
    harness.broker.subscribe_inline(control, ["$CONTROL/tidegate/#"])
    client = harness.connect()
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
