"""What is not a CONNECT, or not one that can be accepted (MQTT 5, sections 3.1 and 4.13)."""

from collections.abc import Callable

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import BOTH, ONLY_3, Case, case_table
from tests.conformance.support.codes import MALFORMED, PROTOCOL_ERROR, TOPIC_NAME_INVALID
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps

FORM = "5:3.1.4-1 5:4.13.1-1 3.1.1:3.1.4-1 3.1.1:3.2.2-6"
CLIENT_ID = wire.text("x")


def with_flags(flags: int, *payload: bytes, will: bool = False) -> Callable[[int], bytes]:
    """Return what makes a CONNECT of these flags, client identifier x and this payload."""

    def packet(version: int) -> bytes:
        none = b"\x00" if version == wire.MQTT_5 else b""
        return wire.packet(
            wire.CONNECT,
            wire.protocol(version),
            bytes([flags, 0, 0]),
            none,
            CLIENT_ID,
            none if will else b"",
            *payload,
        )

    return packet


WILL = (wire.text("t"), wire.text(b"gone"))

MALFORMED_CASES = [
    Case(f"{FORM} 5:3.1.2-3 3.1.1:3.1.2-3", "the reserved flag", with_flags(0x03)),
    *(
        Case(
            f"{FORM} 5:3.1.2-11 3.1.1:3.1.2-11 3.1.1:3.1.2-13",
            f"a will's QoS {qos} without a will",
            with_flags(0x02 | qos << 3),
        )
        for qos in (1, 2, 3)
    ),
    Case(
        f"{FORM} 5:3.1.2-13 3.1.1:3.1.2-15 3.1.1:3.1.2-11",
        "a will's RETAIN without a will",
        with_flags(0x22),
    ),
    Case(
        f"{FORM} 5:3.1.2-12 3.1.1:3.1.2-14", "a will of QoS 3", with_flags(0x1E, *WILL, will=True)
    ),
    Case(f"{FORM} 5:3.1.2-9 3.1.1:3.1.2-9", "a will flag without a will", with_flags(0x06)),
    Case(
        f"{FORM} 5:3.1.2-9 3.1.1:3.1.2-9",
        "a will without a payload",
        with_flags(0x06, WILL[0], will=True),
    ),
    Case(f"{FORM} 3.1.1:3.1.2-11", "a will without its flag", with_flags(0x02, *WILL)),
    Case(
        f"{FORM} 5:3.1.2-16 3.1.1:3.1.2-18",
        "a user name without its flag",
        with_flags(0x02, wire.text("u")),
    ),
    Case(f"{FORM} 5:3.1.2-17 3.1.1:3.1.2-19", "a flag without a user name", with_flags(0x82)),
    Case(
        f"{FORM} 5:3.1.2-18 3.1.1:3.1.2-20",
        "a password without its flag",
        with_flags(0x82, wire.text("u"), wire.text("p")),
    ),
    Case(
        f"{FORM} 5:3.1.2-19 3.1.1:3.1.2-21",
        "a flag without a password",
        with_flags(0xC2, wire.text("u")),
    ),
    Case(
        f"{FORM} 3.1.1:3.1.2-22",
        "a password without a user name",
        with_flags(0x42, wire.text("p")),
        versions=ONLY_3,
    ),
    Case(FORM, "a byte behind the last field", with_flags(0x02, b"\x00")),
    Case(
        f"{FORM} 5:3.1.3-3 3.1.1:3.1.3-3",
        "no client identifier",
        lambda version: wire.packet(
            wire.CONNECT,
            wire.protocol(version),
            b"\x02\x00\x00",
            b"\x00" if version == wire.MQTT_5 else b"",
        ),
    ),
    Case(
        f"{FORM} 5:3.1.3-1 3.1.1:3.1.3-1",
        "the payload cut short",
        with_flags(0x06, wire.text("t"), b"\x00\x09gone", will=True),
    ),
    *(
        Case(
            "5:4.7.0-1 5:3.1.4-1 3.1.1:4.7.1-1 3.1.1:3.1.4-1",
            f"the will's topic is {topic}",
            with_flags(0x06, wire.text(topic), WILL[1], will=True),
            TOPIC_NAME_INVALID,
        )
        for topic in ("a/#", "a/+/b", "#")
    ),
    Case(
        "5:4.7.3-1 5:3.1.4-1 3.1.1:4.7.3-1 3.1.1:3.1.4-1",
        "the will's topic is empty",
        with_flags(0x06, wire.text(""), WILL[1], will=True),
        TOPIC_NAME_INVALID,
    ),
]


@case_table(*MALFORMED_CASES)
def test_is_not_accepted(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.open(version)
    peer.send(data)
    peer.expect_no_acceptance(code)


@keeps("5:3.1.4-1", "3.1.1:3.1.4-1")
def test_no_part_of_a_connect_is_accepted_for_the_whole(peers: Peers, version: int) -> None:
    properties = wire.two_property(wire.RECEIVE_MAXIMUM, 9) if version == wire.MQTT_5 else b""
    whole = wire.connect(
        version,
        peers.name(),
        properties=properties,
        will=wire.Will("t", b"gone", 1),
        username="user",
        password=b"password",
    )
    body = whole[2:]
    assert len(body) < 0x80
    for size in range(len(body)):
        peer = peers.open(version)
        peer.send(wire.packet(wire.CONNECT, body[:size]))
        peer.expect_no_acceptance()


@keeps("5:3.1.2-1", "3.1.1:3.1.2-1")
@pytest.mark.parametrize("protocol", ["", "mqtt", "MQT", "MQTTX", "MQIsdp", "HTTP", "\ufeffMQTT"])
def test_another_protocol_name(peers: Peers, version: int, protocol: str) -> None:
    peer = peers.open(version)
    head = wire.text(protocol) + bytes([version, 0x02, 0, 0])
    peer.send(wire.packet(wire.CONNECT, head, wire.text("x") * 2))
    assert peer.receive() in (b"", b"\x20\x02\x00\x01")
    peer.expect_end()


@keeps("5:3.1.2-2", "3.1.1:3.1.2-2", "3.1.1:3.2.2-4", "3.1.1:3.2.2-5")
@pytest.mark.parametrize("level", [0, 1, 2, 3, 6, 7, 127, 128, 255])
def test_an_unsupported_level_gets_return_code_1(peers: Peers, level: int) -> None:
    peer = peers.open()
    head = wire.text("MQTT") + bytes([level, 0x02, 0, 0])
    peer.send(wire.packet(wire.CONNECT, head, wire.text("x")))
    peer.expect(b"\x20\x02\x00\x01")
    peer.expect_end()


FIRST = {
    "CONNACK": b"\x20\x02\x00\x00",
    "PUBLISH": wire.publish(wire.MQTT_3_1_1, "t", b"x"),
    "PUBACK": wire.acknowledgement(wire.PUBACK, 1),
    "PUBREC": wire.acknowledgement(wire.PUBREC, 1),
    "PUBREL": wire.acknowledgement(wire.PUBREL, 1),
    "PUBCOMP": wire.acknowledgement(wire.PUBCOMP, 1),
    "SUBSCRIBE": wire.subscribe(wire.MQTT_3_1_1, 1, ("t", 0)),
    "UNSUBSCRIBE": wire.unsubscribe(wire.MQTT_3_1_1, 1, "t"),
    "PINGREQ": wire.PINGREQ,
    "DISCONNECT": wire.disconnect(),
    "AUTH": b"\xf0\x00",
    "type 0": b"\x00\x00",
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16 03 01 00 05 01 00 00 01 00"),
}


@keeps("5:3.1.0-1", "3.1.1:3.1.0-1", "5:3.14.0-1")
@pytest.mark.parametrize("data", FIRST.values(), ids=FIRST.keys())
def test_the_first_packet_is_a_connect(peers: Peers, data: bytes) -> None:
    peer = peers.open()
    peer.send(data)
    peer.expect_end()


@keeps("5:3.1.0-2", "3.1.1:3.1.0-2", "5:3.2.0-2")
@pytest.mark.parametrize("second", BOTH, ids=["then v3.1.1", "then v5"])
def test_a_second_connect(peers: Peers, version: int, second: int) -> None:
    peer = peers.connect(version)
    peer.send(wire.connect(second, peer.client_id))
    peer.expect_error(PROTOCOL_ERROR)


@keeps("5:3.1.0-2", "3.1.1:3.1.0-2")
def test_a_second_connect_that_is_malformed(peers: Peers, version: int) -> None:
    peer = peers.connect(version)
    peer.send(b"\x10\x00")
    peer.expect_error(MALFORMED)


@keeps("5:3.1.4-6", "3.1.1:3.1.4-5", "5:3.2.2-7", "5:4.13.2-1")
def test_nothing_behind_a_refused_connect_is_processed(
    peers: Peers, version: int, topic: str
) -> None:
    watcher = peers.connect(version).subscribe((topic, 0))
    peer = peers.open(version)
    peer.send(with_flags(0x03)(version), wire.publish(version, topic, b"too late"))
    peer.expect_no_acceptance(MALFORMED)
    watcher.expect_nothing()
