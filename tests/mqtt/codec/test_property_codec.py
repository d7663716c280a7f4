"""Values of properties that are out of range, and the bounds around them."""

import pytest

from gateway.mqtt.codec.property_codec import (
    MAXIMUM_PROPERTIES,
    read_properties,
    write_fields,
    write_properties,
)
from gateway.mqtt.codec.property_table import ALLOWED, FLAG, PROPERTIES
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import PacketType
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.table import table

FLAGS = [identifier for identifier, row in PROPERTIES.items() if row.kind is FLAG]


@table("identifier", FLAGS)
@table("value", [2, 255])
def test_a_flag_is_0_or_1(identifier: int, value: int) -> None:
    row = PROPERTIES[identifier]
    for packet in row.packets:
        with pytest.raises(ProtocolError) as raised:
            read_properties(bytes([2, identifier, value]), 0, 3, packet, 5)
        assert raised.value.reason_code == ReasonCode.PROTOCOL_ERROR
        assert raised.value.reason == f"{row.name} {value}; it must be 0 or 1"


@table(
    ("packet", "raw", "name", "reason_code"),
    [
        (PacketType.CONNECT, b"\x21\x00\x00", "receive_maximum", 0x82),
        (PacketType.CONNACK, b"\x21\x00\x00", "receive_maximum", 0x82),
        (PacketType.CONNECT, b"\x27\x00\x00\x00\x00", "maximum_packet_size", 0x82),
        (PacketType.CONNACK, b"\x27\x00\x00\x00\x00", "maximum_packet_size", 0x82),
        (PacketType.SUBSCRIBE, b"\x0b\x00", "subscription_identifiers", 0x82),
        (PacketType.PUBLISH, b"\x0b\x00", "subscription_identifiers", 0x82),
        (PacketType.PUBLISH, b"\x23\x00\x00", "topic_alias", 0x94),
    ],
)
def test_a_value_that_may_not_be_0(
    packet: PacketType, raw: bytes, name: str, reason_code: int
) -> None:
    with pytest.raises(ProtocolError) as raised:
        read_properties(bytes([len(raw)]) + raw, 0, len(raw) + 1, packet, 5)
    assert raised.value.reason_code == reason_code
    assert raised.value.reason == f"{name} 0; at least 1"


def test_before_mqtt_5_there_are_no_properties() -> None:
    assert read_properties(b"\x02\x01\x01", 0, 3, PacketType.PUBLISH, 4) == (NO_PROPERTIES, 0)
    assert write_properties(Properties(content_type="t"), PacketType.PUBLISH, 4) == b""


def test_a_packet_without_properties_shares_one_object() -> None:
    properties, position = read_properties(b"\x00\x01", 0, 2, PacketType.PUBLISH, 5)
    assert properties is NO_PROPERTIES
    assert position == 1


def test_a_value_ends_with_the_properties_and_not_with_the_packet() -> None:
    raw = b"\x03\x02\x00\x00\x00\x01payload"
    with pytest.raises(MalformedPacket, match="message_expiry_interval needs 4 bytes, 2"):
        read_properties(raw, 0, len(raw), PacketType.PUBLISH, 5)


def test_user_properties_keep_their_order() -> None:  # [MQTT-3.3.2-18]
    pairs = tuple((name, str(number)) for number, name in enumerate("bacab"))
    raw = write_properties(Properties(user_properties=pairs), PacketType.PUBLISH, 5)
    properties, _ = read_properties(raw, 0, len(raw), PacketType.PUBLISH, 5)
    assert properties.user_properties == pairs


@pytest.mark.timeout(30)
def test_many_user_properties_cost_no_more_than_their_bytes() -> None:
    count = MAXIMUM_PROPERTIES
    raw = write_properties(Properties(user_properties=(("", ""),) * count), PacketType.PUBLISH, 5)
    properties, _ = read_properties(raw, 0, len(raw), PacketType.PUBLISH, 5)
    assert len(properties.user_properties) == count
    one_more = write_properties(
        Properties(content_type="t", user_properties=(("", ""),) * count), PacketType.PUBLISH, 5
    )
    with pytest.raises(ProtocolError, match="more than 4096 properties") as refused:
        read_properties(one_more, 0, len(one_more), PacketType.PUBLISH, 5)
    assert refused.value.reason_code == ReasonCode.QUOTA_EXCEEDED


def test_named_properties_can_be_left_out() -> None:
    properties = Properties(content_type="t", message_expiry_interval=1)
    without = write_fields(properties, PacketType.PUBLISH, without=("message_expiry_interval",))
    assert without == b"\x03\x00\x01t"


def test_one_byte_is_enough_for_every_property_identifier() -> None:
    assert all(identifier < 0x80 for rows in ALLOWED.values() for identifier in rows)
