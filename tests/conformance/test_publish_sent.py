"""What a subscriber is sent and how it answers (MQTT 5, sections 3.3, 4.3 and 4.4)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.codes import NOT_FOUND
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBCOMP, PUBREC, PUBREL, acknowledgement

REFUSING = [0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]


@keeps("5:3.8.4-8", "3.1.1:3.8.4-6", "5:4.3.1-1", "5:4.3.2-2", "5:4.3.3-2", "5:3.3.1-2")
@keeps("3.1.1:4.3.1-1", "3.1.1:4.3.2-1", "3.1.1:4.3.3-1", "3.1.1:3.3.1-2", "5:3.3.1-12")
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_the_lesser_qos_is_delivered(
    peers: Peers, version: int, topic: str, published: int, granted: int
) -> None:
    watcher = peers.connect(version).subscribe((topic, granted))
    peers.connect(version).publish(topic, b"x", published)
    watcher.expect_publish(topic, b"x", qos=min(published, granted))


@keeps("5:2.2.1-4", "5:4.3.2-1", "5:4.3.3-1", "3.1.1:2.3.1-4", "3.1.1:4.3.2-1", "3.1.1:4.3.3-1")
def test_identifiers_in_use_are_not_used_again(peers: Peers, version: int, topic: str) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peer = peers.connect(version)
    for number in range(20):
        peer.publish(topic, b"%d" % number, 1 + number % 2)
    sent = [
        watcher.expect_publish(topic, b"%d" % number, qos=1 + number % 2) for number in range(20)
    ]
    identifiers = [publish.packet_id for publish in sent]
    assert 0 not in identifiers
    assert len(set(identifiers)) == 20


@keeps("5:4.3.3-4", "5:4.3.3-5", "5:4.3.3-6", "5:3.6.2-1", "5:2.2.1-5", "3.1.1:4.3.3-1")
def test_the_handshake_of_qos_2(peers: Peers, version: int, topic: str) -> None:
    watcher = peers.persistent(version).subscribe((topic, 2))
    peers.connect(version).publish(topic, b"x", 2)
    number = watcher.expect_publish(topic, b"x", qos=2).packet_id
    watcher.send(acknowledgement(PUBREC, number))
    watcher.expect(acknowledgement(PUBREL, number))
    watcher.send(acknowledgement(PUBCOMP, number))
    watcher.expect_nothing()
    watcher.close()
    peers.persistent(version, watcher.client_id).expect_nothing()


@keeps("5:4.3.2-3", "5:4.4.0-1", "5:3.3.1-1", "5:2.2.1-4", "3.1.1:4.4.0-1", "3.1.1:3.3.1-1")
@keeps("3.1.1:4.6.0-1", "3.1.1:4.3.2-1", "5:4.3.3-3", "3.1.1:2.3.1-4", "3.1.1:4.3.3-1")
def test_what_is_unacknowledged_is_sent_again_in_its_order(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.persistent(version).subscribe((topic, 2))
    peer = peers.connect(version)
    for number in range(6):
        peer.publish(topic, b"%d" % number, 1 + number % 2)
    sent = [
        watcher.expect_publish(topic, b"%d" % number, qos=1 + number % 2) for number in range(6)
    ]
    watcher.send(acknowledgement(PUBACK, sent[2].packet_id))
    watcher.expect_nothing()
    watcher.reset()
    again = peers.persistent(version, watcher.client_id)
    for publish in (sent[0], sent[1], sent[3], sent[4], sent[5]):
        repeated = again.expect_publish(topic, publish.payload, qos=publish.qos, dup=True)
        assert repeated.packet_id == publish.packet_id
    again.expect_nothing()


@keeps("5:4.4.0-1", "5:4.3.3-5", "5:4.3.3-6", "3.1.1:4.4.0-1", "3.1.1:4.3.3-1")
def test_an_unanswered_pubrel_is_sent_again_and_not_the_publish(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.persistent(version).subscribe((topic, 2))
    peers.connect(version).publish(topic, b"x", 2)
    number = watcher.expect_publish(topic, b"x", qos=2).packet_id
    watcher.send(acknowledgement(PUBREC, number))
    watcher.expect(acknowledgement(PUBREL, number))
    watcher.close()
    again = peers.persistent(version, watcher.client_id)
    again.expect(acknowledgement(PUBREL, number))
    again.send(acknowledgement(PUBCOMP, number))
    again.expect_nothing()
    again.close()
    peers.persistent(version, watcher.client_id).expect_nothing()


@keeps("5:4.4.0-1", "3.1.1:4.4.0-1", "3.1.1:4.6.0-1")
def test_new_messages_come_behind_what_is_sent_again(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.persistent(version).subscribe((topic, 1))
    peer = peers.connect(version)
    peer.publish(topic, b"1", 1)
    watcher.expect_publish(topic, b"1", qos=1)
    watcher.disconnect()
    peer.publish(topic, b"2", 1)
    again = peers.persistent(version, watcher.client_id)
    again.expect_publish(topic, b"1", qos=1, dup=True)
    again.expect_publish(topic, b"2", qos=1)
    peer.publish(topic, b"3", 1)
    again.expect_publish(topic, b"3", qos=1)


@keeps("5:3.3.1-3", "3.1.1:3.3.1-3", "5:4.3.2-2", "5:4.3.3-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_dup_is_not_forwarded(peers: Peers, version: int, topic: str, qos: int) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peers.connect(version).publish(topic, b"x", qos, dup=True)
    watcher.expect_publish(topic, b"x", qos=qos)


@keeps("5:4.4.0-2", "5:4.3.2-3", "5:3.4.2-1", "5:4.3.3-4", "5:3.5.2-1")
@pytest.mark.parametrize("code", REFUSING)
@pytest.mark.parametrize(("qos", "first_byte"), [(1, PUBACK), (2, PUBREC)])
def test_a_refusing_answer_ends_the_delivery(
    peers: Peers, topic: str, qos: int, first_byte: int, code: int
) -> None:
    watcher = peers.persistent().subscribe((topic, qos))
    peers.connect().publish(topic, b"x", qos)
    number = watcher.expect_publish(topic, b"x", qos=qos).packet_id
    watcher.send(acknowledgement(first_byte, number, code))
    watcher.expect_nothing()
    watcher.close()
    peers.persistent(client_id=watcher.client_id).expect_nothing()


@keeps("5:3.5.2-1", "5:4.3.3-4")
def test_a_pubrec_may_say_that_nobody_subscribes(peers: Peers, topic: str) -> None:
    watcher = peers.connect().subscribe((topic, 2))
    peers.connect().publish(topic, b"x", 2)
    number = watcher.expect_publish(topic, b"x", qos=2).packet_id
    watcher.send(acknowledgement(PUBREC, number, 0x10, wire.user_property("a", "b")))
    watcher.expect(acknowledgement(PUBREL, number))


@keeps("5:4.3.3-5")
def test_a_pubcomp_of_any_code_ends_the_delivery(peers: Peers, topic: str) -> None:
    watcher = peers.persistent().subscribe((topic, 2))
    peers.connect().publish(topic, b"x", 2)
    number = watcher.expect_publish(topic, b"x", qos=2).packet_id
    watcher.send(acknowledgement(PUBREC, number))
    watcher.expect(acknowledgement(PUBREL, number))
    watcher.send(acknowledgement(PUBCOMP, number, NOT_FOUND))
    watcher.expect_nothing()
    watcher.close()
    peers.persistent(client_id=watcher.client_id).expect_nothing()


@keeps("5:4.3.2-3", "3.1.1:4.3.2-1")
@pytest.mark.parametrize("first_byte", [PUBACK, PUBCOMP], ids=["PUBACK", "PUBCOMP"])
def test_answers_to_nothing_are_ignored(peers: Peers, version: int, first_byte: int) -> None:
    peer = peers.connect(version)
    peer.send(acknowledgement(first_byte, 77))
    peer.expect_nothing()


@keeps("5:3.6.2-1")
def test_a_pubrec_of_an_unknown_identifier_is_answered(peers: Peers, version: int) -> None:
    peer = peers.connect(version)
    peer.send(acknowledgement(PUBREC, 77))
    code = NOT_FOUND if version == wire.MQTT_5 else None
    peer.expect(acknowledgement(PUBREL, 77, code))


@keeps("5:4.13.1-1", "3.1.1:4.8.0-1")
@pytest.mark.parametrize(
    ("qos", "first_byte"),
    [(1, PUBREC), (1, PUBCOMP), (2, PUBACK), (2, PUBCOMP)],
    ids=["PUBREC for QoS 1", "PUBCOMP for QoS 1", "PUBACK for QoS 2", "PUBCOMP before PUBREC"],
)
def test_the_answer_of_another_handshake_is_a_protocol_error(
    peers: Peers, version: int, topic: str, qos: int, first_byte: int
) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peers.connect(version).publish(topic, b"x", qos)
    number = watcher.expect_publish(topic, b"x", qos=qos).packet_id
    watcher.send(acknowledgement(first_byte, number))
    watcher.expect_error(0x82)


@keeps("5:4.3.3-4", "3.1.1:4.3.3-1")
def test_a_pubrec_that_comes_twice_is_answered_twice(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peers.connect(version).publish(topic, b"x", 2)
    number = watcher.expect_publish(topic, b"x", qos=2).packet_id
    for _ in range(2):
        watcher.send(acknowledgement(PUBREC, number))
        watcher.expect(acknowledgement(PUBREL, number))


@keeps("5:2.2.1-4", "3.1.1:2.3.1-4")
def test_more_messages_than_there_are_identifiers(peers: Peers, topic: str) -> None:
    """Identifiers are free again once their handshake is over."""
    version = wire.MQTT_3_1_1
    watcher = peers.connect(version).subscribe((topic, 1))
    peer = peers.connect(version)
    for number in range(1, 5):
        peer.publish(topic, b"%d" % number, 1)
        first = watcher.expect_publish(topic, b"%d" % number, qos=1)
        watcher.send(acknowledgement(PUBACK, first.packet_id))
    unanswered = b"unanswered"
    peer.publish(topic, unanswered, 1)
    kept = watcher.expect_publish(topic, unanswered, qos=1).packet_id
    for _ in range(66):
        _thousand_messages(peer, watcher, topic, kept)


def _thousand_messages(peer: Peer, watcher: Peer, topic: str, kept: int) -> None:
    peer.send(wire.publish(peer.version, topic, b"x", 1, 1) * 1000)
    answered = acknowledgement(PUBACK, 1)
    for _ in range(1000):
        sent = watcher.expect_publish(topic, b"x", qos=1)
        assert sent.packet_id != kept
        watcher.send(acknowledgement(PUBACK, sent.packet_id))
    for _ in range(1000):
        peer.expect(answered)
