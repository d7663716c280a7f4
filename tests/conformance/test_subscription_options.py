"""No Local, overlapping subscriptions and their identifiers (MQTT 5, section 3.3.4)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps


@keeps("5:3.8.3-3")
def test_no_local(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((topic, wire.NO_LOCAL | 1))
    other = peers.connect().subscribe((topic, 0))
    for qos in (0, 1, 2):
        peer.publish(topic, b"mine", qos)
        other.expect_publish(topic, b"mine")
        other.publish_unanswered(topic, b"another's")
        peer.expect_publish(topic, b"another's")
        other.expect_publish(topic, b"another's")
    peer.expect_nothing()


@keeps("5:3.8.3-3")
def test_no_local_holds_for_the_identifier_also_on_a_new_connection(
    peers: Peers, topic: str
) -> None:
    peer = peers.persistent().subscribe((topic, wire.NO_LOCAL | 1))
    peer.disconnect()
    again = peers.persistent(client_id=peer.client_id)
    again.publish(topic, b"mine", 1)
    again.expect_nothing()


@keeps("5:3.8.3-3", "5:3.3.4-2")
def test_no_local_on_one_of_two_overlapping_subscriptions(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((topic, wire.NO_LOCAL | 2)).subscribe((f"{topic}/#", 1))
    peer.send(wire.publish(wire.MQTT_5, topic, b"mine", 2, 5))
    received = {peer.receive()[0] & 0xF0, peer.receive()[0] & 0xF0}
    assert received == {wire.PUBLISH, wire.PUBREC}
    peer.expect_nothing()


@keeps("5:3.3.4-2", "5:3.3.4-4", "3.1.1:3.3.5-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_overlapping_subscriptions_bring_one_message_of_the_highest_qos(
    peers: Peers, version: int, topic: str, qos: int
) -> None:
    peer = peers.connect(version)
    peer.subscribe((f"{topic}/#", 0), (f"{topic}/+", qos), (f"{topic}/a", min(qos, 1)))
    peers.connect(version).publish(f"{topic}/a", b"x", 2)
    peer.expect_publish(f"{topic}/a", b"x", qos=qos)
    peer.expect_nothing()


@keeps("5:3.3.4-3", "5:3.3.4-4", "5:3.3.4-5", "5:3.8.2.1.2")
def test_all_identifiers_of_overlapping_subscriptions_come(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    for number, topic_filter in ((268_435_455, f"{topic}/#"), (1, f"{topic}/+"), (128, topic)):
        properties = wire.subscription_identifier(number)
        peer.subscribe((topic_filter, 0), properties=properties)
    peer.subscribe((f"{topic}/a", 1))  # which has none
    peers.connect().publish(f"{topic}/a", b"x", 1)
    received = read_publish(peer.receive(), wire.MQTT_5)
    assert (received.topic, received.qos) == (f"{topic}/a".encode(), 1)
    found = sorted(received.properties)
    assert found == [(wire.SUBSCRIPTION_IDENTIFIER, number) for number in (1, 268_435_455)]
    peer.expect_nothing()


@keeps("5:3.3.4-3", "5:3.8.4-5")
def test_one_identifier_for_all_filters_of_a_subscribe(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    requests = [(f"{topic}/a", 0), (f"{topic}/b", 1)]
    peer.subscribe(*requests, properties=wire.subscription_identifier(16_384))
    for topic_name, qos in requests:
        peers.connect().publish(topic_name, b"x", 1)
        properties = [(wire.SUBSCRIPTION_IDENTIFIER, 16_384)]
        peer.expect_publish(topic_name, b"x", qos=qos, properties=properties)


@keeps("5:3.3.4-3", "5:3.1.2-5")
def test_identifiers_are_kept_with_the_session(peers: Peers, topic: str) -> None:
    peer = peers.persistent()
    peer.subscribe((topic, 1), properties=wire.subscription_identifier(5))
    peer.disconnect()
    publisher = peers.connect()
    publisher.publish(topic, b"1", 1)
    again = peers.persistent(client_id=peer.client_id)
    publisher.publish(topic, b"2", 1)
    properties = [(wire.SUBSCRIPTION_IDENTIFIER, 5)]
    again.expect_publish(topic, b"1", qos=1, properties=properties)
    again.expect_publish(topic, b"2", qos=1, properties=properties)


@keeps("5:3.3.4-3")
def test_retained_messages_carry_the_identifier(peers: Peers, topic: str) -> None:
    peers.connect().publish(topic, b"kept", 1, retain=True)
    peer = peers.connect()
    peer.subscribe((topic, 1), properties=wire.subscription_identifier(5))
    properties = [(wire.SUBSCRIPTION_IDENTIFIER, 5)]
    peer.expect_publish(topic, b"kept", qos=1, retain=True, properties=properties)
