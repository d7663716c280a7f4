"""Topic aliases on their way in and out (MQTT 5, section 3.3.2.3.4)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.conformance.support.codes import PROTOCOL_ERROR, TOPIC_ALIAS_INVALID
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, acknowledgement


def alias(number: int) -> bytes:
    return wire.two_property(wire.TOPIC_ALIAS, number)


def servers_maximum(peer: Peer) -> int:
    maximum = peer.connack.properties[wire.TOPIC_ALIAS_MAXIMUM]
    assert isinstance(maximum, int)
    return maximum


@keeps("5:3.3.2-12", "5:3.3.2.3.4", "5:3.3.2-3")
def test_every_alias_up_to_the_maximum_is_accepted(peers: Peers, topic: str) -> None:
    watcher = peers.connect().subscribe((f"{topic}/#", 0))
    peer = peers.connect()
    for number in range(1, servers_maximum(peer) + 1):
        peer.publish_unanswered(f"{topic}/{number}", b"set", properties=alias(number))
        watcher.expect_publish(f"{topic}/{number}", b"set")
    for number in range(1, servers_maximum(peer) + 1):
        peer.publish_unanswered("", b"used", properties=alias(number))
        watcher.expect_publish(f"{topic}/{number}", b"used")


@keeps("5:3.3.2-9", "5:3.2.2-17", "5:3.2.2-18")
def test_an_alias_above_the_maximum(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    peer.publish_unanswered(topic, properties=alias(servers_maximum(peer) + 1))
    peer.expect_error(TOPIC_ALIAS_INVALID)


@keeps("5:3.3.2-8")
@pytest.mark.parametrize("topic_name", ["", "topic"])
def test_alias_0(peers: Peers, topic_name: str) -> None:
    peer = peers.connect()
    peer.publish_unanswered(topic_name, properties=alias(0))
    peer.expect_error(TOPIC_ALIAS_INVALID)


@keeps("5:3.3.2.3.4")
def test_an_alias_that_stands_for_nothing(peers: Peers) -> None:
    peer = peers.connect()
    peer.publish_unanswered("", properties=alias(1))
    peer.expect_error(PROTOCOL_ERROR)


@keeps("5:3.3.2.3.4")
def test_an_alias_can_be_given_to_another_topic(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((f"{topic}/#", 0))
    for name in ("a", "b"):
        peer.publish_unanswered(f"{topic}/{name}", b"set", properties=alias(1))
        peer.expect_publish(f"{topic}/{name}", b"set")
        peer.publish_unanswered("", b"used", properties=alias(1))
        peer.expect_publish(f"{topic}/{name}", b"used")


@keeps("5:3.3.2.3.4")
def test_a_topic_can_have_two_aliases(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((topic, 0))
    for number in (1, 2):
        peer.publish_unanswered(topic, b"set", properties=alias(number))
        peer.expect_publish(topic, b"set")
    for number in (1, 2):
        peer.publish_unanswered("", b"used", properties=alias(number))
        peer.expect_publish(topic, b"used")


@keeps("5:3.3.2-7")
def test_an_alias_ends_with_its_connection(peers: Peers, topic: str) -> None:
    peer = peers.persistent()
    peer.publish(topic, b"set", 1, properties=alias(1))
    peer.disconnect()
    again = peers.persistent(client_id=peer.client_id)
    assert again.connack.flags == 1
    again.publish_unanswered("", properties=alias(1))
    again.expect_error(PROTOCOL_ERROR)


@keeps("5:3.3.2.3.4", "5:4.3.3-10")
@pytest.mark.parametrize("qos", [1, 2])
def test_an_alias_at_each_qos(peers: Peers, topic: str, qos: int) -> None:
    watcher = peers.connect().subscribe((topic, 2))
    peer = peers.connect()
    peer.publish(topic, b"set", qos, 1, properties=alias(1))
    watcher.expect_publish(topic, b"set", qos=qos)
    peer.publish("", b"used", qos, 2, properties=alias(1))
    watcher.expect_publish(topic, b"used", qos=qos)


def test_aliases_of_two_clients_are_their_own(peers: Peers, topic: str) -> None:
    first, second = peers.connect(), peers.connect()
    first.publish(f"{topic}/1", b"", 1, properties=alias(1))
    second.publish(f"{topic}/2", b"", 1, properties=alias(1))
    watcher = peers.connect().subscribe((f"{topic}/#", 0))
    first.publish_unanswered("", b"first", properties=alias(1))
    watcher.expect_publish(f"{topic}/1", b"first")
    second.publish_unanswered("", b"second", properties=alias(1))
    watcher.expect_publish(f"{topic}/2", b"second")


@keeps("5:3.1.2-27", "5:3.3.2-11")
@pytest.mark.parametrize("stated", [None, 0])
def test_no_aliases_for_who_states_no_maximum(peers: Peers, topic: str, stated: int | None) -> None:
    properties = b"" if stated is None else wire.two_property(wire.TOPIC_ALIAS_MAXIMUM, stated)
    watcher = peers.connect(properties=properties).subscribe((f"{topic}/#", 0))
    peer = peers.connect()
    for number in range(10):
        peer.publish(f"{topic}/{number % 2}", b"x", 1, properties=alias(1 + number % 2))
        watcher.expect_publish(f"{topic}/{number % 2}", b"x")


@keeps("5:3.1.2-26", "5:3.3.2-11", "5:3.3.2-3")
@pytest.mark.parametrize("stated", [1, 3, 65_535])
def test_aliases_to_a_client_keep_to_its_maximum(peers: Peers, topic: str, stated: int) -> None:
    properties = wire.two_property(wire.TOPIC_ALIAS_MAXIMUM, stated)
    watcher = peers.connect(properties=properties).subscribe((f"{topic}/#", 0))
    peer = peers.connect()
    known: dict[int, bytes] = {}
    for number in range(50):
        name = f"{topic}/of a certain length/{number % 5}"
        peer.publish(name, b"%d" % number, 1)
        received = read_publish(watcher.receive(), wire.MQTT_5)
        used = dict(received.properties).get(wire.TOPIC_ALIAS)
        if isinstance(used, int):
            assert 1 <= used <= stated
            known[used] = received.topic or known[used]
            assert known[used] == name.encode()
        else:
            assert received.topic == name.encode()
        assert received.payload == b"%d" % number


@keeps("5:3.3.2-7", "5:4.4.0-1")
def test_what_is_sent_again_has_its_topic(peers: Peers, topic: str) -> None:
    properties = wire.two_property(wire.TOPIC_ALIAS_MAXIMUM, 10)
    watcher = peers.persistent(properties=properties).subscribe((topic, 1))
    peer = peers.connect()
    for number in range(3):
        peer.publish(topic, b"%d" % number, 1)
        watcher.receive()
    watcher.close()
    again = peers.persistent(client_id=watcher.client_id, properties=properties)
    for number in range(3):
        again.expect_publish(topic, b"%d" % number, qos=1, dup=True)


@keeps("5:3.3.1-5")
def test_a_retained_message_is_kept_under_its_topic(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    peer.publish(topic, b"old", 1, retain=True, properties=alias(1))
    peer.send(wire.publish(wire.MQTT_5, "", b"new", 1, 2, retain=True, properties=alias(1)))
    peer.expect(acknowledgement(PUBACK, 2, 0x10))
    peers.connect().subscribe((topic, 0)).expect_publish(topic, b"new", retain=True)
