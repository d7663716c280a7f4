"""Receive Maximum and Maximum Packet Size, both ways (MQTT 5, sections 3.1.2.11 and 4.9)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.codes import RECEIVE_MAXIMUM_EXCEEDED
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBCOMP, PUBREC, PUBREL, acknowledgement


def window(size: int) -> bytes:
    return wire.two_property(wire.RECEIVE_MAXIMUM, size)


def maximum(size: int) -> bytes:
    return wire.four_property(wire.MAXIMUM_PACKET_SIZE, size)


def publish_numbers(peers: Peers, topic: str, first: int, last: int, qos: int) -> None:
    peer = peers.connect()
    for number in range(first, last + 1):
        peer.publish(topic, b"%d" % number, qos)


@keeps("5:3.3.4-9", "5:4.9.0-1", "5:4.9.0-2", "5:4.3.2-3")
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_no_more_than_the_clients_receive_maximum_is_sent(
    peers: Peers, topic: str, size: int, qos: int
) -> None:
    watcher = peers.connect(properties=window(size)).subscribe((topic, qos))
    publish_numbers(peers, topic, 1, size + 2, qos)
    sent = [watcher.expect_publish(topic, b"%d" % number, qos=qos) for number in range(1, size + 1)]
    watcher.expect_nothing()
    for place in range(2):
        finish(watcher, qos, sent[place].packet_id)
        sent.append(watcher.expect_publish(topic, b"%d" % (size + 1 + place), qos=qos))
        watcher.expect_nothing()


def finish(watcher: Peer, qos: int, packet_id: int) -> None:
    """Acknowledge a message as far as it takes; of QoS 2 only PUBCOMP makes room."""
    if qos == 1:
        watcher.send(acknowledgement(PUBACK, packet_id))
        return
    watcher.send(acknowledgement(PUBREC, packet_id))
    watcher.expect(acknowledgement(PUBREL, packet_id))
    watcher.expect_nothing()
    watcher.send(acknowledgement(PUBCOMP, packet_id))


@keeps("5:3.3.4-9", "5:4.9.0-2")
@pytest.mark.parametrize("code", [0x80, 0x97])
def test_a_refusing_pubrec_makes_room(peers: Peers, topic: str, code: int) -> None:
    watcher = peers.connect(properties=window(1)).subscribe((topic, 2))
    publish_numbers(peers, topic, 1, 2, 2)
    number = watcher.expect_publish(topic, b"1", qos=2).packet_id
    watcher.send(acknowledgement(PUBREC, number, code))
    watcher.expect_publish(topic, b"2", qos=2)


@keeps("5:3.3.4-10", "5:4.9.0-3")
def test_a_full_window_holds_back_nothing_else(peers: Peers, topic: str) -> None:
    watcher = peers.connect(properties=window(1)).subscribe((topic, 1))
    publish_numbers(peers, topic, 1, 3, 1)
    watcher.expect_publish(topic, b"1", qos=1)
    watcher.expect_nothing()
    watcher.subscribe((f"{topic}/other", 0))
    watcher.publish(topic, b"4", 1)
    watcher.publish(f"{topic}/third", b"x", 2)
    watcher.send(wire.unsubscribe(wire.MQTT_5, 2, topic))
    watcher.expect(wire.unsuback(wire.MQTT_5, 2, 0))


@keeps("5:3.3.4-9", "5:4.4.0-1")
def test_the_window_holds_for_what_is_sent_again(peers: Peers, topic: str) -> None:
    watcher = peers.persistent(properties=window(5)).subscribe((topic, 1))
    publish_numbers(peers, topic, 1, 7, 1)
    sent = [watcher.expect_publish(topic, b"%d" % number, qos=1) for number in range(1, 6)]
    watcher.close()
    again = peers.persistent(client_id=watcher.client_id, properties=window(2))
    for publish in sent[:2]:
        again.expect_publish(topic, publish.payload, qos=1, dup=True)
    again.expect_nothing()
    for publish, expected in zip(sent, sent[2:], strict=False):
        again.send(acknowledgement(PUBACK, publish.packet_id))
        again.expect_publish(topic, expected.payload, qos=1, dup=True)
    again.send(acknowledgement(PUBACK, sent[3].packet_id))
    again.expect_publish(topic, b"6", qos=1)
    again.expect_nothing()


def servers_maximum(peer: Peer) -> int:
    size = peer.connack.properties.get(wire.RECEIVE_MAXIMUM, 65_535)
    assert isinstance(size, int)
    return size


@keeps("5:3.3.4-7")
def test_one_message_more_than_the_servers_receive_maximum(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    size = servers_maximum(peer)
    for number in range(1, size + 1):
        peer.send(wire.publish(wire.MQTT_5, topic, b"", 2, number))
    for number in range(1, size + 1):
        peer.expect(acknowledgement(PUBREC, number, 0x10))
    peer.send(wire.publish(wire.MQTT_5, topic, b"", 2, size + 1 if size < 65_535 else 65_535))
    if size < 65_535:
        peer.expect_error(RECEIVE_MAXIMUM_EXCEEDED)


@keeps("5:3.3.4-7")
def test_as_many_messages_as_the_servers_receive_maximum_again_and_again(
    peers: Peers, topic: str
) -> None:
    peer = peers.connect()
    size = min(servers_maximum(peer), 2_000)
    for _ in range(3):
        for number in range(1, size + 1):
            peer.send(wire.publish(wire.MQTT_5, topic, b"", 2, number))
        for number in range(1, size + 1):
            peer.expect(acknowledgement(PUBREC, number, 0x10))
        for number in range(1, size + 1):
            peer.send(acknowledgement(PUBREL, number))
        for number in range(1, size + 1):
            peer.expect(acknowledgement(PUBCOMP, number))


@keeps("5:3.1.2-24", "5:3.1.2-25")
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("size", [60, 129, 130, 300])
def test_a_message_of_the_clients_maximum_and_one_byte_above(
    peers: Peers, topic: str, qos: int, size: int
) -> None:
    watcher = peers.connect(properties=maximum(size)).subscribe((topic, qos))
    fitting = b"."
    while len(wire.publish(wire.MQTT_5, topic, fitting + b".", qos, 1)) <= size:
        fitting += b"."
    peer = peers.connect()
    peer.publish(topic, fitting + b".", qos)
    peer.publish(topic, fitting, qos)
    received = watcher.expect_publish(topic, fitting, qos=qos)
    assert len(wire.publish(wire.MQTT_5, topic, fitting, qos, 1)) in (size, size - 1)
    assert received
    watcher.expect_nothing()


@keeps("5:4.3.3-8", "3.1.1:4.3.3-2")
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_who_gets_its_own_qos_2_message_hears_pubrec_first(
    peers: Peers, version: int, topic: str, granted: int
) -> None:
    peer = peers.connect(version).subscribe((topic, granted))
    peer.send(wire.publish(version, topic, b"x", 2, 7))
    peer.expect(acknowledgement(PUBREC, 7))
    peer.send(acknowledgement(PUBREL, 7))
    peer.expect_publish(topic, b"x", qos=granted)
    peer.expect(acknowledgement(PUBCOMP, 7))


@keeps("5:3.1.2-24", "5:3.1.2-25", "5:4.3.3-8")
def test_pubrec_comes_first_whether_or_not_the_message_is_too_large(
    peers: Peers, topic: str
) -> None:
    peer = peers.connect(properties=maximum(60)).subscribe((topic, 2))
    for packet_id, payload in enumerate([b"." * 60, b"fits"], 1):
        peer.send(wire.publish(wire.MQTT_5, topic, payload, 2, packet_id))
        peer.expect(acknowledgement(PUBREC, packet_id))
    peer.send(acknowledgement(PUBREL, 1), acknowledgement(PUBREL, 2))
    peer.expect_publish(topic, b"fits", qos=2)
    peer.expect(acknowledgement(PUBCOMP, 1), acknowledgement(PUBCOMP, 2))


@keeps("5:3.1.2-25", "5:3.3.4-9")
def test_what_is_too_large_takes_no_room_in_the_window(peers: Peers, topic: str) -> None:
    watcher = peers.connect(properties=maximum(60) + window(1)).subscribe((topic, 1))
    peer = peers.connect()
    for _ in range(3):
        peer.publish(topic, b"." * 60, 1)
    peer.publish(topic, b"fits", 1)
    watcher.expect_publish(topic, b"fits", qos=1)


@keeps("5:3.1.2-25")
def test_what_is_too_large_for_one_reaches_the_others(peers: Peers, topic: str) -> None:
    small = peers.connect(properties=maximum(60)).subscribe((topic, 1))
    large = peers.connect().subscribe((topic, 1))
    old = peers.connect(wire.MQTT_3_1_1).subscribe((topic, 1))
    peers.connect().publish(topic, b"." * 60, 1)
    large.expect_publish(topic, b"." * 60, qos=1)
    old.expect_publish(topic, b"." * 60, qos=1)
    small.expect_nothing()


@keeps("5:3.1.2-24", "5:3.1.2-25")
def test_what_waited_is_held_against_the_next_connections_maximum(peers: Peers, topic: str) -> None:
    away = peers.persistent().subscribe((topic, 1))
    away.close()
    peer = peers.connect()
    for payload in (b"." * 60, b"fits", b"." * 61):
        peer.publish(topic, payload, 1)
    again = peers.persistent(client_id=away.client_id, properties=maximum(60))
    again.expect_publish(topic, b"fits", qos=1)
    again.expect_nothing()
    again.close()
    last = peers.persistent(client_id=away.client_id)
    last.expect_publish(topic, b"fits", qos=1, dup=True)
    last.expect_nothing()


@keeps("5:3.1.2-24", "5:3.1.2-25")
def test_a_retained_message_that_is_too_large(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    peer.publish(f"{topic}/large", b"." * 60, 1, retain=True)
    peer.publish(f"{topic}/small", b"fits", 1, retain=True)
    watcher = peers.connect(properties=maximum(60)).subscribe((f"{topic}/#", 1))
    watcher.expect_publish(f"{topic}/small", b"fits", qos=1, retain=True)
    watcher.expect_nothing()


SMALL = 20
"""So small that no answer has room for a Reason String."""


@keeps("5:3.4.2-2", "5:3.4.2-3", "5:3.5.2-2", "5:3.5.2-3", "5:3.6.2-2", "5:3.6.2-3")
@keeps("5:3.7.2-2", "5:3.7.2-3", "5:3.9.2-1", "5:3.9.2-2", "5:3.11.2-1", "5:3.11.2-2")
@keeps("5:3.1.2-29")
@pytest.mark.parametrize(
    "properties",
    [maximum(SMALL), wire.byte_property(wire.REQUEST_PROBLEM_INFORMATION, 0)],
    ids=["no room for reasons", "none asked for"],
)
def test_answers_without_reasons(peers: Peers, properties: bytes) -> None:
    """Answers fit the client's maximum, and say no reasons to who asked for none."""
    peer = peers.connect(properties=properties)
    where = wire.user_property("$where", "no expression at all (((")
    for data, expected in (
        (wire.publish(wire.MQTT_5, "$SYS/x", b"", 1, 1), acknowledgement(PUBACK, 1, 0x87)),
        (wire.publish(wire.MQTT_5, "$SYS/x", b"", 2, 2), acknowledgement(PUBREC, 2, 0x87)),
        (acknowledgement(PUBREC, 3), acknowledgement(PUBREL, 3, 0x92)),
        (acknowledgement(PUBREL, 4), acknowledgement(PUBCOMP, 4, 0x92)),
        (
            wire.subscribe(wire.MQTT_5, 5, ("a/b", 0), properties=where),
            wire.suback(wire.MQTT_5, 5, 0x83),
        ),
        (wire.unsubscribe(wire.MQTT_5, 6, "a/b"), wire.unsuback(wire.MQTT_5, 6, 0x11)),
    ):
        peer.send(data)
        peer.expect(expected)


@keeps("5:3.14.2-3", "5:3.14.2-4", "5:3.14.2-2", "5:3.14.2-1")
def test_a_disconnect_fits_the_clients_maximum(peers: Peers) -> None:
    peer = peers.connect(properties=maximum(SMALL))
    peer.send(b"\x00\x00")
    peer.expect(wire.disconnect(0x81))
    peer.expect_end()


@keeps("5:3.1.2-29")
def test_user_properties_of_messages_come_all_the_same(peers: Peers, topic: str) -> None:
    quiet = peers.connect(properties=wire.byte_property(wire.REQUEST_PROBLEM_INFORMATION, 0))
    quiet.subscribe((topic, 0))
    peers.connect().publish(topic, b"x", 1, properties=wire.user_property("a", "b"))
    quiet.expect_publish(topic, b"x", properties=[(wire.USER_PROPERTY, (b"a", b"b"))])


def test_a_subscriber_that_stops_acknowledging_holds_nobody_up(
    peers: Peers, version: int, topic: str
) -> None:
    silent = peers.connect(version).subscribe((topic, 1))
    quick = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    for begin in range(0, 2_000, 500):
        numbers = range(begin, begin + 500)
        peer.send(*(wire.publish(version, topic, b"%d" % number, 1, 1) for number in numbers))
        for number in numbers:
            quick.expect_publish(topic, b"%d" % number)
            peer.expect(acknowledgement(PUBACK, 1))
    silent.send(wire.PINGREQ)
    while (raw := silent.receive()) != wire.PINGRESP:
        assert raw[0] == wire.PUBLISH | 0x02
