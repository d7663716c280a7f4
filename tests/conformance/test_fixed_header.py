"""Packet types, flags and remaining lengths (MQTT 5 section 2.1, MQTT 3.1.1 section 2.2)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import BOTH, ONLY_3, Case, case_table
from tests.conformance.support.codes import MALFORMED, PROTOCOL_ERROR
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps

FLAGS = "5:2.1.3-1 5:4.13.1-1 3.1.1:2.2.2-1 3.1.1:2.2.2-2"
RESERVED = "5:2.1.2 5:4.13.1-1 3.1.1:2.2.1 3.1.1:4.8.0-1"
LENGTH = "5:1.5.5 3.1.1:2.2.3"


def unsubscribe(flags: int) -> Case:
    return Case(
        f"{FLAGS} 5:3.10.1-1 3.1.1:3.10.1-1",
        f"UNSUBSCRIBE with flags {flags:04b}",
        lambda version: bytes([0xA0 | flags]) + wire.unsubscribe(version, 1, "t")[1:],
    )


def subscribe(flags: int) -> Case:
    return Case(
        f"{FLAGS} 5:3.8.1-1 3.1.1:3.8.1-1",
        f"SUBSCRIBE with flags {flags:04b}",
        lambda version: bytes([0x80 | flags]) + wire.subscribe(version, 1, ("t", 0))[1:],
    )


def pubrel(flags: int) -> Case:
    data = bytes([0x60 | flags, 2, 0, 1])
    statements = f"{FLAGS} 5:3.6.1-1 3.1.1:3.6.1-1"
    return Case(statements, f"PUBREL with flags {flags:04b}", data)


def other(name: str, data: bytes, flag: int, statements: str = "") -> Case:
    """Return the packet with one flag set that should be 0."""
    flagged = bytes([data[0] | flag]) + data[1:]
    return Case(f"{FLAGS} {statements}", f"{name} with flag {flag:04b}", flagged)


SINGLE_FLAGS = (1, 2, 4, 8)
NOT_0010 = tuple(flags for flags in range(16) if flags != 0b0010)

CASES = [
    *map(subscribe, NOT_0010),
    *map(unsubscribe, NOT_0010),
    *map(pubrel, NOT_0010),
    *(other("PUBACK", b"\x40\x02\x00\x01", flag) for flag in SINGLE_FLAGS),
    *(other("PUBREC", b"\x50\x02\x00\x01", flag) for flag in SINGLE_FLAGS),
    *(other("PUBCOMP", b"\x70\x02\x00\x01", flag) for flag in SINGLE_FLAGS),
    *(other("PINGREQ", wire.PINGREQ, flag) for flag in SINGLE_FLAGS),
    *(
        other("DISCONNECT", wire.disconnect(), flag, "5:3.14.1-1 3.1.1:3.14.1-1")
        for flag in SINGLE_FLAGS
    ),
    *(
        other("AUTH", b"\xf0\x00", flag, "5:3.15.1-1")._replace(versions=(wire.MQTT_5,))
        for flag in SINGLE_FLAGS
    ),
    Case(RESERVED, "type 0", b"\x00\x00"),
    Case(RESERVED, "type 0 with flags and a body", b"\x0f\x02\x00\x01"),
    Case(RESERVED, "type 15", b"\xf0\x00", versions=ONLY_3),
    Case(RESERVED, "CONNACK from a client", b"\x20\x02\x00\x00", PROTOCOL_ERROR, ONLY_3),
    Case(RESERVED, "CONNACK from a client, MQTT 5", b"\x20\x03\x00\x00\x00", PROTOCOL_ERROR),
    Case(
        RESERVED, "SUBACK from a client", lambda version: wire.suback(version, 1, 0), PROTOCOL_ERROR
    ),
    Case(
        RESERVED,
        "UNSUBACK from a client",
        lambda version: wire.unsuback(version, 1, 0),
        PROTOCOL_ERROR,
    ),
    Case(RESERVED, "PINGRESP from a client", wire.PINGRESP, PROTOCOL_ERROR),
    Case(LENGTH, "a remaining length of five bytes", b"\xc0\x80\x80\x80\x80\x00"),
    Case(LENGTH, "a remaining length of four bytes that goes on", b"\x30\xff\xff\xff\xff"),
    Case("5:4.13.1-1 3.1.1:4.8.0-1", "PINGREQ with a body", b"\xc0\x01\x00"),
    Case("5:4.13.1-1 3.1.1:4.8.0-1", "DISCONNECT with a body", b"\xe0\x01\x00", versions=ONLY_3),
]


@case_table(*CASES)
def test_ends_the_connection(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


ERROR = "5:4.13.1-1 3.1.1:4.8.0-1"

ACKNOWLEDGEMENTS = {"PUBACK": 0x40, "PUBREC": 0x50, "PUBREL": 0x62, "PUBCOMP": 0x70}
OTHERS = {
    "CONNECT": 0x10,
    "PUBLISH": 0x30,
    "PUBLISH of QoS 1": 0x32,
    "PUBLISH of QoS 2": 0x34,
    "SUBSCRIBE": 0x82,
    "UNSUBSCRIBE": 0xA2,
    "PINGREQ": 0xC0,
}

HEADERS = [
    *(
        Case(ERROR, f"{name} of 1 byte", bytes([first_byte, 1]))
        for name, first_byte in {**ACKNOWLEDGEMENTS, **OTHERS}.items()
    ),
    *(
        Case(ERROR, f"{name} of {length} bytes", bytes([first_byte, length]), versions=ONLY_3)
        for name, first_byte in {**ACKNOWLEDGEMENTS, "DISCONNECT": 0xE0}.items()
        for length in (3, 4, 127)
    ),
    Case(ERROR, "DISCONNECT of 2 bytes", b"\xe0\x02", versions=ONLY_3),
    Case(ERROR, "PINGREQ of 100,000 bytes", b"\xc0" + wire.variable(100_000)),
    Case(ERROR, "PUBLISH of QoS 1 of 4 bytes", b"\x32\x04"),
    Case(ERROR, "SUBSCRIBE of 5 bytes", b"\x82\x05", versions=ONLY_3),
    Case(ERROR, "UNSUBSCRIBE of 4 bytes", b"\xa2\x04", versions=ONLY_3),
]
"""Fixed headers with a remaining length that the packet cannot have; no body follows them."""


UNFINISHED = (b"", b"\xc0", b"\xff\xff", b"\x7f")
"""A remaining length that is not whole, and one of a body that does not come."""

BEGINNINGS = [
    Case(statements, f"{name}, then {behind.hex() or 'nothing'}", first + behind, code, versions)
    for statements, name, first, code, versions in (
        (RESERVED, "type 0", b"\x0a", MALFORMED, BOTH),
        (RESERVED, "type 15", b"\xf0", MALFORMED, ONLY_3),
        (FLAGS, "PUBLISH of QoS 3", b"\x36", MALFORMED, BOTH),
        (FLAGS, "PUBLISH of QoS 0 with DUP", b"\x38", MALFORMED, BOTH),
        (FLAGS, "SUBSCRIBE with flags 0000", b"\x80", MALFORMED, BOTH),
        (FLAGS, "UNSUBSCRIBE with flags 0000", b"\xa0", MALFORMED, BOTH),
        (FLAGS, "PUBREL with flags 0000", b"\x60", MALFORMED, BOTH),
        (FLAGS, "PUBACK with flags 0001", b"\x41", MALFORMED, BOTH),
        (FLAGS, "PINGREQ with flags 1000", b"\xc8", MALFORMED, BOTH),
    )
    for behind in UNFINISHED
]
"""First bytes that are wrong whatever follows, in front of what never ends."""


@case_table(*BEGINNINGS)
def test_a_first_byte_that_cannot_be_ends_the_connection_at_once(
    peers: Peers, version: int, data: bytes, code: int
) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:3.1.0-1", "3.1.1:3.1.0-1")
@pytest.mark.parametrize("first", [b"\x0a", b"\x1a", b"\x30", b"\xc0", b"\xf0"])
def test_what_is_no_connect_ends_the_connection_at_once(peers: Peers, first: bytes) -> None:
    for behind in UNFINISHED:
        peer = peers.open()
        peer.send(first + behind)
        peer.expect_no_acceptance()


@case_table(*HEADERS)
def test_an_illegal_remaining_length_ends_the_connection_at_once(
    peers: Peers, version: int, data: bytes, code: int
) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:4.13.1-1", "3.1.1:4.8.0-1")
@pytest.mark.parametrize("length", range(1, 7))
def test_a_connect_that_is_too_short_ends_the_connection_at_once(peers: Peers, length: int) -> None:
    peer = peers.open()
    peer.send(bytes([0x10, length]))
    peer.expect_no_acceptance()


FIRST = [
    Case(f"{FLAGS} 5:3.1.4-1 3.1.1:3.1.4-1", f"CONNECT with flag {flag:04b}", bytes([0x10 | flag]))
    for flag in SINGLE_FLAGS
]


@case_table(*FIRST)
def test_a_flagged_connect_is_not_accepted(
    peers: Peers, version: int, data: bytes, code: int
) -> None:
    peer = peers.open(version)
    peer.send(data + wire.connect(version, peers.name())[1:])
    peer.expect_no_acceptance(code)


@keeps("5:3.12.4-1", "3.1.1:3.12.4-1")
def test_many_packets_in_one_segment_are_answered_in_order(
    peers: Peers, version: int, topic: str
) -> None:
    peer = peers.open(version)
    peer.send(
        wire.connect(version, peers.name()),
        wire.PINGREQ,
        wire.subscribe(version, 1, (topic, 0)),
        wire.publish(version, topic, b"1"),
        wire.PINGREQ,
        wire.unsubscribe(version, 2, topic),
    )
    assert peer.receive()[0] == wire.CONNACK
    peer.expect(
        wire.PINGRESP,
        wire.suback(version, 1, 0),
        wire.publish(version, topic, b"1"),
        wire.PINGRESP,
        wire.unsuback(version, 2, 0),
    )


@keeps("5:4.2.0-1")
@pytest.mark.parametrize("version", [wire.MQTT_3_1, *BOTH])
def test_a_conversation_byte_by_byte(peers: Peers, version: int, topic: str) -> None:
    peer = peers.open(version)
    conversation = (
        wire.connect(version, peers.name())
        + wire.subscribe(version, 7, (topic, 0))
        + wire.publish(version, topic, b"x" * 200)
        + wire.PINGREQ
    )
    for position in range(len(conversation)):
        peer.send(conversation[position : position + 1])
    assert peer.receive()[0] == wire.CONNACK
    peer.expect(wire.suback(version, 7, 0), wire.publish(version, topic, b"x" * 200), wire.PINGRESP)


@keeps("5:1.5.5-1")
@pytest.mark.parametrize("size", [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
def test_remaining_lengths_at_the_edges_of_their_bytes(
    peers: Peers, version: int, topic: str, size: int
) -> None:
    peer = peers.connect(version).subscribe((topic, 0))
    head = len(wire.publish(version, topic)) - 2
    data = wire.publish(version, topic, b"." * max(0, size - head))
    peer.send(data)
    peer.expect(data)


def test_a_remaining_length_longer_than_needed_is_read(peers: Peers, version: int) -> None:
    """[MQTT-1.5.5-1] binds who sends; there is one way to read it, and MQTT 3.1.1 allows it."""
    peer = peers.connect(version)
    peer.send(b"\xc0\x80\x00", b"\xc0\x80\x80\x80\x00")
    peer.expect(wire.PINGRESP, wire.PINGRESP)


@keeps("5:4.13.1-1", "3.1.1:4.8.0-1")
def test_nothing_behind_a_malformed_packet_is_processed(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version)
    peer.send(b"\xc0\x01\x00", wire.publish(version, topic, b"too late"), wire.PINGREQ)
    peer.expect_error(MALFORMED)
    watcher.expect_nothing()
