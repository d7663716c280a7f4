"""Packets to bytes: the table of packet cases, and what an older version cannot say."""

import pytest

from gateway.mqtt.codec.packet_codec import WRITERS, encode
from gateway.mqtt.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import PacketCase
from tests.mqtt.packet_cases import PACKET_CASES
from tests.support.table import table

EXPLAINED = Properties(reason_string="why")


@table("case", PACKET_CASES, ids=lambda case: case.name)
def test_a_packet_is_written_in_its_shortest_form(case: PacketCase) -> None:
    encoded = encode(case.packet, case.version)
    assert (encoded == case.raw) == case.shortest


def test_each_packet_has_a_writer() -> None:
    assert {type(case.packet) for case in PACKET_CASES} == set(WRITERS)


@table("version", [3, 4])
@table(
    ("packet", "raw"),
    [
        (ConnAck(False, ReasonCode.SUCCESS, EXPLAINED), b"\x20\x02\x00\x00"),
        (Publish("t", b"x", properties=Properties(content_type="c")), b"\x30\x04\x00\x01tx"),
        (PubAck(1, ReasonCode.QUOTA_EXCEEDED), b"\x40\x02\x00\x01"),
        (PubAck(1, ReasonCode.SUCCESS, EXPLAINED), b"\x40\x02\x00\x01"),
        (
            Subscribe(1, [SubscriptionRequest("t", 1, True, True, 2)]),
            b"\x82\x06\x00\x01\x00\x01t\x01",
        ),
        (
            SubAck(1, [ReasonCode.GRANTED_QOS_2, ReasonCode.NOT_AUTHORIZED], EXPLAINED),
            b"\x90\x04\x00\x01\x02\x80",
        ),
        (UnsubAck(1, [ReasonCode.NO_SUBSCRIPTION_EXISTED], EXPLAINED), b"\xb0\x02\x00\x01"),
        (Disconnect(ReasonCode.SERVER_SHUTTING_DOWN, EXPLAINED), b"\xe0\x00"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_only_mqtt_5_can_say_is_left_out(packet: Packet, raw: bytes, version: int) -> None:
    assert encode(packet, version) == raw


@table(
    ("reason_code", "return_code"),
    [(0x00, 0), (0x84, 1), (0x85, 2), (0x86, 4), (0x87, 5), (0x8A, 5), (0x90, 5)]
    + [(other, 3) for other in (0x80, 0x81, 0x82, 0x83, 0x88, 0x89, 0x95, 0x97, 0x9F)],
)
def test_a_refused_connect_gets_a_return_code_before_mqtt_5(
    reason_code: int, return_code: int
) -> None:
    packet = ConnAck(False, ReasonCode(reason_code))
    assert encode(packet, 4) == bytes([0x20, 2, 0, return_code])


def test_mqtt_3_1_has_no_session_present() -> None:
    assert encode(ConnAck(True), 3) == b"\x20\x02\x00\x00"


def test_empty_properties_are_no_properties() -> None:
    assert encode(PubAck(1, properties=Properties()), 5) == b"\x40\x02\x00\x01"
    assert encode(Publish("t", properties=Properties()), 5) == b"\x30\x04\x00\x01t\x00"


def test_a_property_of_another_packet_is_left_out() -> None:
    assert encode(PubAck(1, properties=Properties(receive_maximum=1)), 5) == b"\x40\x02\x00\x01"


@pytest.mark.parametrize(
    ("packet", "version", "text"),
    [
        (Auth(), 4, "only in MQTT 5"),
        (Publish("t" * 65536), 4, "65536 bytes in one field; at most 65535"),
        (Publish("t", bytes(268_435_453)), 4, "268435456; at most 268435455"),
        (Connect(password=b"x" * 65536), 5, "65536 bytes"),
        (
            Publish("t", properties=Properties(subscription_identifiers=(268_435_456,))),
            5,
            "268435456; at most 268435455",
        ),
    ],
    ids=["auth", "topic", "packet", "password", "subscription identifier"],
)
def test_what_no_field_can_hold_is_refused(packet: Packet, version: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        encode(packet, version)


@pytest.mark.parametrize("packet_id", [-1, 65536])
def test_a_packet_identifier_out_of_range_is_refused(packet_id: int) -> None:
    with pytest.raises(OverflowError):
        encode(PubAck(packet_id), 4)
