"""How a connection ends from the client's side (MQTT 5, section 3.14)."""

import socket

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import ONLY_5, Case, case_table
from tests.conformance.support.codes import MALFORMED, PROTOCOL_ERROR
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import Will
from tests.support.table import table

KNOWN_CODES = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]
UNKNOWN_CODES = [0x01, 0x02, 0x05, 0x10, 0x11, 0x18, 0x19, 0x7F, 0x84, 0x85, 0x8A, 0x91, 0x92, 0xFF]

CASES = [
    *(
        Case("5:3.14.2-1 5:4.13.1-1", f"DISCONNECT 0x{code:02X}", wire.disconnect(code))
        for code in UNKNOWN_CODES
    ),
    Case("5:4.13.1-1", "DISCONNECT with bytes behind its properties", b"\xe0\x03\x00\x00\x00"),
    Case("5:4.13.1-1", "DISCONNECT with a property length alone", b"\xe0\x02\x00\x01"),
    *(
        Case(
            "5:3.15.2-1 5:4.13.1-1",
            f"AUTH 0x{code:02X}",
            wire.packet(
                wire.AUTH,
                bytes([code]),
                wire.behind_length(wire.text_property(wire.AUTHENTICATION_METHOD, "m")),
            ),
        )
        for code in (0x01, 0x17, 0x80, 0xFF)
    ),
    Case("5:4.12.0-7", "AUTH without a method", b"\xf0\x02\x18\x00", PROTOCOL_ERROR),
]


@case_table(*(case._replace(versions=ONLY_5) for case in CASES))
def test_ends_the_connection(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:3.14.4-2", "5:3.14.2-1")
@table("code", KNOWN_CODES)
@table(
    "properties",
    [None, b"", wire.text_property(wire.REASON_STRING, "because") + wire.user_property("a", "b")],
    ids=["", "no properties", "a reason"],
)
def test_a_disconnect_has_no_answer(peers: Peers, code: int, properties: bytes | None) -> None:
    peers.connect().disconnect(code, properties)


@keeps("5:3.14.4-1", "3.1.1:3.14.4-3")
def test_nothing_behind_a_disconnect_is_processed(peers: Peers, version: int, topic: str) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version, will=Will(topic))
    peer.send(
        wire.publish(version, topic, b"before"),
        wire.disconnect(),
        wire.publish(version, topic, b"behind"),
        b"\x00\x00",
        wire.PINGREQ,
    )
    peer.expect_end()
    watcher.expect_publish(topic, b"before")
    watcher.expect_nothing()


@keeps("5:3.1.2-8", "3.1.1:3.1.2-8")
def test_a_malformed_disconnect_does_not_call_the_will_off(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version, will=Will(topic))
    peer.send(b"\xe2\x00")
    peer.expect_error(MALFORMED)
    watcher.expect_publish(topic, b"gone")


@keeps("5:3.1.2-8", "3.1.1:3.1.2-8")
def test_a_client_that_says_no_more_is_gone(peers: Peers, version: int, topic: str) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.connect(version, will=Will(topic))
    peer.send(wire.publish(version, topic, b"last"))
    peer.socket.shutdown(socket.SHUT_WR)
    peer.expect_end()
    watcher.expect_publish(topic, b"last")
    watcher.expect_publish(topic, b"gone")


@keeps("5:4.3.1-1", "3.1.1:4.3.1-1", "5:4.5.0-1", "3.1.1:4.5.0-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_client_that_waits_for_no_answer(
    peers: Peers, version: int, topic: str, qos: int
) -> None:
    watcher = peers.connect(version).subscribe((topic, 2))
    peer = peers.open(version)
    peer.send(
        wire.connect(version, peers.name()),
        wire.publish(version, topic, b"x", qos, 1),
        wire.disconnect(),
    )
    peer.close()
    watcher.expect_publish(topic, b"x", qos=qos)
