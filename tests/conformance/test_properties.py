"""Properties in the wrong place, twice, cut short or out of range (MQTT 5, section 2.2.2)."""

from collections.abc import Iterable

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import ONLY_5, Case, case_table
from tests.conformance.support.codes import (
    MALFORMED,
    PROTOCOL_ERROR,
    TOPIC_ALIAS_INVALID,
    TOPIC_NAME_INVALID,
)
from tests.conformance.support.peer import Peers
from tests.conformance.support.property_cases import (
    FIRST,
    LATER,
    Carrier,
    connect,
    publish,
    subscribe,
)
from tests.conformance.support.wire import byte_property, four_property, two_property, user_property


def tables(carriers: list[Carrier]) -> Iterable[Case]:
    for carrier in carriers:
        for name, data in carrier.misplaced():
            yield Case("5:2.2.2.2", name, data, MALFORMED, ONLY_5)
        for name, data in carrier.cut_short():
            yield Case("5:2.2.2.2", name, data, MALFORMED, ONLY_5)
        for name, data in carrier.twice():
            yield Case("5:2.2.2.2/twice", name, data, PROTOCOL_ERROR, ONLY_5)


def lengths(name: str, head: bytes, behind: bytes) -> Iterable[Case]:
    """Return property lengths that are not ones, in a packet of these parts."""
    for what, length in {
        "that is longer than needed": b"\x80\x00",
        "of five bytes": b"\x80\x80\x80\x80\x01",
        "beyond the packet": b"\x7f",
        "that is not there": None,
        "that ends with the packet": b"\x80",
    }.items():
        complete = b"" if length in (None, b"\x80") else behind
        data = wire.packet(head[0], head[1:], length or b"", complete)
        number = "5:1.5.5-1" if length == b"\x80\x00" else "5:1.5.5"
        yield Case(f"{number} 5:2.2.2.2", f"{name} with a property length {what}", data)


CONNECT_HEAD = bytes([wire.CONNECT]) + wire.protocol(wire.MQTT_5) + b"\x02\x00\x00"

AT_CONNECT = [
    *tables(FIRST),
    *lengths("CONNECT", CONNECT_HEAD, wire.text("x")),
    Case(
        "5:3.1.2.11.3",
        "Receive Maximum 0",
        connect(two_property(wire.RECEIVE_MAXIMUM, 0)),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.1.2.11.4",
        "Maximum Packet Size 0",
        connect(four_property(wire.MAXIMUM_PACKET_SIZE, 0)),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.1.2.11.6",
        "Request Response Information 2",
        connect(byte_property(wire.REQUEST_RESPONSE_INFORMATION, 2)),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.1.2.11.7",
        "Request Problem Information 255",
        connect(byte_property(wire.REQUEST_PROBLEM_INFORMATION, 255)),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.1.2.11.10",
        "authentication data without a method",
        connect(wire.text_property(wire.AUTHENTICATION_DATA, b"x")),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.3.2.3.2",
        "Payload Format Indicator 2 in a will",
        wire.connect(
            wire.MQTT_5,
            "x",
            will=wire.Will("t", properties=byte_property(wire.PAYLOAD_FORMAT_INDICATOR, 2)),
        ),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.3.2-14",
        "a wildcard in a will's Response Topic",
        wire.connect(
            wire.MQTT_5,
            "x",
            will=wire.Will("t", properties=wire.text_property(wire.RESPONSE_TOPIC, "a/+")),
        ),
        TOPIC_NAME_INVALID,
    ),
]


@case_table(*(case._replace(versions=ONLY_5) for case in AT_CONNECT))
def test_connect_is_not_accepted(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.open(version)
    peer.send(data)
    peer.expect_no_acceptance(code)


AFTER_CONNECT = [
    *tables(LATER),
    *lengths("PUBLISH", bytes([wire.PUBLISH]) + wire.text("t"), b""),
    *lengths("SUBSCRIBE", bytes([wire.SUBSCRIBE, 0, 1]), wire.text("t") + b"\x00"),
    *lengths("UNSUBSCRIBE", bytes([wire.UNSUBSCRIBE, 0, 1]), wire.text("t")),
    Case(
        "5:3.3.2.3.2",
        "Payload Format Indicator 2",
        publish(byte_property(wire.PAYLOAD_FORMAT_INDICATOR, 2)),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:3.3.2-8",
        "topic alias 0",
        publish(two_property(wire.TOPIC_ALIAS, 0)),
        TOPIC_ALIAS_INVALID,
    ),
    Case(
        "5:3.3.2-9 5:3.2.2-17",
        "a topic alias of 65,535",
        publish(two_property(wire.TOPIC_ALIAS, 65_535)),
        TOPIC_ALIAS_INVALID,
    ),
    Case(
        "5:3.3.4-6",
        "a subscription identifier in a client's PUBLISH",
        publish(wire.subscription_identifier(1)),
        PROTOCOL_ERROR,
    ),
    *(
        Case(
            "5:3.3.2-14",
            f"{character} in the Response Topic",
            publish(wire.text_property(wire.RESPONSE_TOPIC, f"a/{character}")),
            TOPIC_NAME_INVALID,
        )
        for character in "+#"
    ),
    Case(
        "5:3.8.2.1.2",
        "subscription identifier 0",
        subscribe(wire.subscription_identifier(0)),
        PROTOCOL_ERROR,
    ),
    Case(
        "5:1.5.5", "a subscription identifier of five bytes", subscribe(b"\x0b\x80\x80\x80\x80\x01")
    ),
    Case("5:1.5.5-1", "a subscription identifier longer than needed", subscribe(b"\x0b\x81\x00")),
]


@case_table(*(case._replace(versions=ONLY_5) for case in AFTER_CONNECT))
def test_ends_the_connection(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


WELCOME = {
    "PUBACK": wire.acknowledgement(wire.PUBACK, 9, 0, user_property("a", "b")),
    "PUBCOMP": wire.acknowledgement(wire.PUBCOMP, 9, 0, user_property("a", "b") * 2),
    "PUBLISH": publish(user_property("a", "b") * 2 + user_property("", "")),
}


@pytest.mark.parametrize("data", WELCOME.values(), ids=WELCOME.keys())
def test_user_properties_may_come_often(peers: Peers, data: bytes) -> None:
    peer = peers.connect()
    peer.send(data)
    peer.expect_nothing()
