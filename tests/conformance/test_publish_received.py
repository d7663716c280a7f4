"""What a client publishes: topics, QoS, handshakes (MQTT 5, sections 3.3 and 4.3)."""

from functools import partial

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import ONLY_3, ONLY_5, Case, case_table
from tests.conformance.support.codes import (
    NO_MATCHING_SUBSCRIBERS,
    NOT_AUTHORIZED,
    NOT_FOUND,
    PROTOCOL_ERROR,
    TOPIC_NAME_INVALID,
)
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBCOMP, PUBREC, PUBREL, acknowledgement

ERROR = "5:4.13.1-1 3.1.1:4.8.0-1"


def with_first_byte(first_byte: int, packet_id: bytes = b"\x00\x01") -> Case:
    none = {wire.MQTT_3_1_1: b"", wire.MQTT_5: b"\x00"}
    return Case(
        f"{ERROR} 5:3.3.1-4 3.1.1:3.3.1-4",
        f"PUBLISH with first byte 0x{first_byte:02X}",
        lambda version: wire.packet(first_byte, wire.text("t"), packet_id, none[version]),
    )


def published(topic: str, qos: int, version: int) -> bytes:
    """Return a PUBLISH without a payload, of packet identifier 0."""
    return wire.publish(version, topic, b"", qos, 0)


CASES = [
    *(with_first_byte(first_byte) for first_byte in (0x36, 0x37, 0x3E, 0x3F)),
    *(
        with_first_byte(first_byte, b"")._replace(statements=f"{ERROR} 5:3.3.1-2 3.1.1:3.3.1-2")
        for first_byte in (0x38, 0x39)
    ),
    *(
        Case(
            "5:3.3.2-2 5:4.7.0-1 3.1.1:3.3.2-2 3.1.1:4.7.1-1",
            f"topic name {topic}",
            partial(published, topic, 0),
            TOPIC_NAME_INVALID,
        )
        for topic in ("#", "+", "a/#", "a/+/b", "a+", "#a", "$share/g/#")
    ),
    Case(
        "3.1.1:4.7.3-1", "an empty topic name", wire.publish(wire.MQTT_3_1_1, ""), versions=ONLY_3
    ),
    Case(
        "5:4.7.3-1 5:3.3.2.3.4",
        "an empty topic name without an alias",
        wire.publish(wire.MQTT_5, ""),
        PROTOCOL_ERROR,
        ONLY_5,
    ),
    *(
        Case(
            f"{ERROR} 5:2.2.1-3 3.1.1:2.3.1-1",
            f"QoS {qos} with packet identifier 0",
            partial(published, "t", qos),
            PROTOCOL_ERROR,
        )
        for qos in (1, 2)
    ),
    Case(f"{ERROR} 5:3.3.2-1 3.1.1:3.3.2-1", "no topic name", b"\x30\x00"),
    Case(f"{ERROR} 5:3.3.2-1 3.1.1:3.3.2-1", "half a length", b"\x30\x01\x00"),
    Case(f"{ERROR} 5:3.3.2-1 3.1.1:3.3.2-1", "a topic name cut short", b"\x30\x03\x00\x02t"),
    Case(f"{ERROR} 5:2.2.1-3 3.1.1:2.3.1-1", "no packet identifier", b"\x32\x03\x00\x01t"),
    Case(f"{ERROR} 5:2.2.1-3 3.1.1:2.3.1-1", "half an identifier", b"\x34\x04\x00\x01t\x00"),
    Case("5:2.2.2-1", "no property length", b"\x30\x03\x00\x01t", versions=ONLY_5),
]


@case_table(*CASES)
def test_ends_the_connection(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:3.3.4-1", "5:2.2.1-2", "5:4.3.1-1", "3.1.1:3.3.4-1", "3.1.1:2.3.1-5", "3.1.1:4.3.1-1")
def test_qos_0_has_no_answer(peers: Peers, version: int, topic: str) -> None:
    peer = peers.connect(version)
    peer.publish_unanswered(topic, b"x")
    peer.expect_nothing()


@keeps("5:3.3.4-1", "5:4.3.2-4", "5:2.2.1-5", "5:3.4.2-1")
@keeps("3.1.1:3.3.4-1", "3.1.1:4.3.2-2", "3.1.1:2.3.1-6")
@pytest.mark.parametrize("packet_id", [1, 255, 256, 65_535])
def test_qos_1_is_answered(peers: Peers, version: int, topic: str, packet_id: int) -> None:
    peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    peer.send(wire.publish(version, topic, b"x", 1, packet_id))
    peer.expect(acknowledgement(PUBACK, packet_id))


@keeps("5:3.3.4-1", "5:4.3.3-8", "5:4.3.3-11", "5:2.2.1-5", "5:3.5.2-1", "5:3.7.2-1")
@keeps("3.1.1:3.3.4-1", "3.1.1:4.3.3-2", "3.1.1:2.3.1-6")
@pytest.mark.parametrize("packet_id", [1, 255, 256, 65_535])
def test_qos_2_is_answered_twice(peers: Peers, version: int, topic: str, packet_id: int) -> None:
    peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    peer.send(wire.publish(version, topic, b"x", 2, packet_id))
    peer.expect(acknowledgement(PUBREC, packet_id))
    peer.send(acknowledgement(PUBREL, packet_id))
    peer.expect(acknowledgement(PUBCOMP, packet_id))
    peer.expect_nothing()


@keeps("5:3.4.2-1", "5:3.5.2-1")
def test_mqtt_5_says_that_nobody_subscribes(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    peer.send(wire.publish(wire.MQTT_5, topic, b"x", 1, 1))
    peer.expect(acknowledgement(PUBACK, 1, NO_MATCHING_SUBSCRIBERS))
    peer.send(wire.publish(wire.MQTT_5, topic, b"x", 2, 2))
    peer.expect(acknowledgement(PUBREC, 2, NO_MATCHING_SUBSCRIBERS))
    peer.send(acknowledgement(PUBREL, 2))
    peer.expect(acknowledgement(PUBCOMP, 2))


@keeps("5:4.3.2-5", "3.1.1:4.3.2-2", "5:3.3.1-3", "3.1.1:3.3.1-3", "5:4.3.3-12", "3.1.1:4.3.3-2")
@pytest.mark.parametrize("dup", [False, True])
@pytest.mark.parametrize("qos", [1, 2])
def test_after_puback_or_pubcomp_the_identifier_is_a_new_message(
    peers: Peers, version: int, topic: str, qos: int, dup: bool
) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    for payload in (b"1", b"2"):
        peer.publish(topic, payload, qos, 7, dup=dup)
        watcher.expect_publish(topic, payload)


@keeps("5:4.3.3-10", "3.1.1:4.3.3-2")
@pytest.mark.parametrize("dup", [True, False])
def test_until_pubrel_a_qos_2_message_is_delivered_once(
    peers: Peers, version: int, topic: str, dup: bool
) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    peer.send(wire.publish(version, topic, b"x", 2, 7))
    peer.expect(acknowledgement(PUBREC, 7))
    peer.send(wire.publish(version, topic, b"x", 2, 7, dup=dup))
    peer.expect(acknowledgement(PUBREC, 7))
    peer.send(acknowledgement(PUBREL, 7))
    peer.expect(acknowledgement(PUBCOMP, 7))
    watcher.expect_publish(topic, b"x")
    watcher.expect_nothing()


@keeps("5:4.3.3-10", "5:4.4.0-1", "3.1.1:4.3.3-2", "3.1.1:4.4.0-1")
def test_a_qos_2_message_that_comes_again_on_a_new_connection_is_delivered_once(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.persistent(version)
    peer.send(wire.publish(version, topic, b"x", 2, 7))
    peer.expect(acknowledgement(PUBREC, 7))
    peer.reset()
    again = peers.persistent(version, peer.client_id)
    again.send(wire.publish(version, topic, b"x", 2, 7, dup=True))
    again.expect(acknowledgement(PUBREC, 7))
    again.reset()
    last = peers.persistent(version, peer.client_id)
    last.send(acknowledgement(PUBREL, 7))
    last.expect(acknowledgement(PUBCOMP, 7))
    watcher.expect_publish(topic, b"x")
    watcher.expect_nothing()


@keeps("5:3.7.2-1", "5:4.3.3-11", "3.1.1:4.3.3-2")
def test_pubrel_of_an_unknown_identifier_is_answered(peers: Peers, version: int) -> None:
    peer = peers.connect(version)
    peer.send(acknowledgement(PUBREL, 7))
    code = NOT_FOUND if version == wire.MQTT_5 else None
    peer.expect(acknowledgement(PUBCOMP, 7, code))


@keeps("5:3.6.2-1", "5:4.3.3-11")
@pytest.mark.parametrize("properties", [None, b"", wire.user_property("a", "b")])
def test_pubrel_with_a_code(peers: Peers, topic: str, properties: bytes | None) -> None:
    peer = peers.connect()
    peer.send(wire.publish(wire.MQTT_5, topic, b"x", 2, 7))
    peer.expect(acknowledgement(PUBREC, 7, NO_MATCHING_SUBSCRIBERS))
    peer.send(acknowledgement(PUBREL, 7, NOT_FOUND, properties))
    peer.expect(acknowledgement(PUBCOMP, 7))


@keeps("5:4.3.3-8", "5:4.3.2-4", "5:4.6.0-5", "3.1.1:4.6.0-6", "3.1.1:4.6.0-5", "5:4.6.0-6")
def test_messages_of_all_kinds_are_delivered_in_their_order(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peer = peers.connect(version)
    for number in range(30):
        peer.send(wire.publish(version, topic, b"%d" % number, number % 3, number + 1))
    for number in range(30):
        watcher.expect_publish(topic, b"%d" % number, qos=number % 3)
    for number in range(30):
        if number % 3:
            peer.expect(acknowledgement((PUBACK, PUBREC)[number % 3 - 1], number + 1))


@keeps("5:4.3.3-10", "5:4.3.2-4", "3.1.1:4.3.3-2")
def test_two_handshakes_side_by_side(peers: Peers, version: int, topic: str) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    peer.send(wire.publish(version, topic, b"1", 2, 1), wire.publish(version, topic, b"2", 1, 2))
    peer.expect(acknowledgement(PUBREC, 1), acknowledgement(PUBACK, 2))
    peer.send(acknowledgement(PUBREL, 1))
    peer.expect(acknowledgement(PUBCOMP, 1))
    watcher.expect_publish(topic, b"1")
    watcher.expect_publish(topic, b"2")


RESERVED = ["$SYS/broker/version", "$SYS/other", "$SYS", "$other/topic"]


@keeps("3.1.1:3.3.5-2", "5:4.3.3-9", "5:3.4.2-1", "5:3.5.2-1")
@pytest.mark.parametrize("topic_name", RESERVED)
def test_topics_of_the_server_are_not_writable(peers: Peers, version: int, topic_name: str) -> None:
    watcher = peers.connect(version).subscribe((topic_name, 0))
    peer = peers.connect(version)
    code = NOT_AUTHORIZED if version == wire.MQTT_5 else None
    for _ in range(2):  # the identifier is free again, whatever the answer
        peer.send(wire.publish(version, topic_name, b"mine", 1, 1))
        peer.expect(acknowledgement(PUBACK, 1, code))
        peer.send(wire.publish(version, topic_name, b"mine", 2, 2))
        peer.expect(acknowledgement(PUBREC, 2, code))
        if code is None:
            peer.send(acknowledgement(PUBREL, 2))
            peer.expect(acknowledgement(PUBCOMP, 2))
    peer.publish_unanswered(topic_name, b"mine", retain=True)
    peer.expect_nothing()
    watcher.send(wire.PINGREQ)
    while (raw := watcher.receive()) != wire.PINGRESP:
        assert b"mine" not in raw


@keeps("5:4.7.3-3", "3.1.1:4.7.3-3")
def test_the_longest_topic(peers: Peers, version: int, topic: str) -> None:
    longest = f"{topic}/".ljust(65_535, "x")
    peer = peers.connect(version).subscribe((longest, 0), (f"{topic}/#", 0))
    peer.publish_unanswered(longest, b"x")
    peer.expect_publish(longest, b"x")


@keeps("5:2.2.1-2", "3.1.1:2.3.1-5")
def test_what_follows_a_qos_0_topic_is_payload(peers: Peers, version: int, topic: str) -> None:
    peer = peers.connect(version).subscribe((topic, 0))
    peer.publish_unanswered(topic, b"\x00\x01\x02")
    peer.expect_publish(topic, b"\x00\x01\x02")


@pytest.mark.parametrize("payload", [b"", b"\x00" * 100, bytes(range(256)) * 1000], ids=len)
@keeps("5:4.3.1-1", "5:4.3.2-2", "5:4.3.3-2", "3.1.1:4.3.1-1", "3.1.1:4.3.2-1", "3.1.1:4.3.3-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_payloads_are_any_bytes(
    peers: Peers, version: int, topic: str, qos: int, payload: bytes
) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peers.connect(version).publish(topic, payload, qos)
    watcher.expect_publish(topic, payload, qos=qos)
