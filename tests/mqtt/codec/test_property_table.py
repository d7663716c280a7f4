"""The table of properties, against the specification's and against the object's fields."""

from dataclasses import fields

import pytest

from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.property_table import ALLOWED, PROPERTIES, WILL
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import PacketType
from gateway.mqtt.properties import Properties
from tests.support.table import table

ACKNOWLEDGEMENTS = "PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK"

TABLE_2_4 = {
    0x01: ("PUBLISH WILL", b"\x01", 1),
    0x02: ("PUBLISH WILL", b"\x00\x00\x01\x00", 256),
    0x03: ("PUBLISH WILL", b"\x00\x01t", "t"),
    0x08: ("PUBLISH WILL", b"\x00\x01r", "r"),
    0x09: ("PUBLISH WILL", b"\x00\x01\x00", b"\x00"),
    0x0B: ("PUBLISH SUBSCRIBE", b"\x80\x01", (128,)),
    0x11: ("CONNECT CONNACK DISCONNECT", b"\xff\xff\xff\xff", 0xFFFFFFFF),
    0x12: ("CONNACK", b"\x00\x01i", "i"),
    0x13: ("CONNACK", b"\x00\x00", 0),
    0x15: ("CONNECT CONNACK AUTH", b"\x00\x01m", "m"),
    0x16: ("CONNECT CONNACK AUTH", b"\x00\x00\x15\x00\x01m", b""),
    0x17: ("CONNECT", b"\x00", 0),
    0x18: ("WILL", b"\x00\x00\x00\x00", 0),
    0x19: ("CONNECT", b"\x01", 1),
    0x1A: ("CONNACK", b"\x00\x01i", "i"),
    0x1C: ("CONNACK DISCONNECT", b"\x00\x01s", "s"),
    0x1F: (f"CONNACK DISCONNECT AUTH {ACKNOWLEDGEMENTS}", b"\x00\x01w", "w"),
    0x21: ("CONNECT CONNACK", b"\xff\xff", 65535),
    0x22: ("CONNECT CONNACK", b"\x00\x00", 0),
    0x23: ("PUBLISH", b"\x00\x01", 1),
    0x24: ("CONNACK", b"\x01", 1),
    0x25: ("CONNACK", b"\x00", 0),
    0x26: (
        f"CONNECT CONNACK PUBLISH WILL SUBSCRIBE UNSUBSCRIBE DISCONNECT AUTH {ACKNOWLEDGEMENTS}",
        b"\x00\x01k\x00\x01v",
        (("k", "v"),),
    ),
    0x27: ("CONNECT CONNACK", b"\x00\x00\x00\x01", 1),
    0x28: ("CONNACK", b"\x01", 1),
    0x29: ("CONNACK", b"\x00", 0),
    0x2A: ("CONNACK", b"\x01", 1),
}
"""Table 2-4 of MQTT 5: the packets that may carry each property, bytes of a value, the value.

Authentication data stands before the method that it needs.
"""

PACKETS = {
    "WILL": WILL,
    **{
        packet_type.name: packet_type
        for packet_type in PacketType
        if "PING" not in packet_type.name
    },
}

EVERY = [(identifier, name) for identifier in TABLE_2_4 for name in PACKETS]
ALLOWED_PAIRS = [pair for pair in EVERY if pair[1] in TABLE_2_4[pair[0]][0].split()]
REPEATABLE = [pair for pair in ALLOWED_PAIRS if pair[0] == 0x26 or pair == (0x0B, "PUBLISH")]


def read(raw: bytes, packet: int) -> Properties:
    framed = bytes([len(raw)]) + raw
    properties, position = read_properties(framed + b"\xff", 0, len(framed), packet, 5)
    assert position == len(framed)
    return properties


def test_each_field_has_one_property() -> None:
    names = [row.name for row in PROPERTIES.values()]
    assert sorted(names) == sorted(field.name for field in fields(Properties))


def test_each_packet_but_the_pings_can_carry_properties() -> None:
    assert set(ALLOWED) == set(PACKETS.values())


@table(("identifier", "name"), ALLOWED_PAIRS, ids=str)
def test_a_property_is_read_and_written(identifier: int, name: str) -> None:
    _, value, expected = TABLE_2_4[identifier]
    properties = read(bytes([identifier]) + value, PACKETS[name])
    assert getattr(properties, PROPERTIES[identifier].name) == expected
    assert read(write_properties(properties, PACKETS[name], 5)[1:], PACKETS[name]) == properties


@table(("identifier", "name"), [pair for pair in EVERY if pair not in ALLOWED_PAIRS], ids=str)
def test_a_property_in_another_packet_is_malformed(identifier: int, name: str) -> None:
    packet_name = "a will" if name == "WILL" else name
    with pytest.raises(MalformedPacket) as raised:
        read(bytes([identifier]) + TABLE_2_4[identifier][1], PACKETS[name])
    assert raised.value.reason == (
        f"property 0x{identifier:02X} is unknown, or not one of {packet_name}"
    )


@table("identifier", sorted(set(range(256)) - set(TABLE_2_4)))
def test_an_unknown_property_is_malformed(identifier: int) -> None:
    for packet in PACKETS.values():
        with pytest.raises(MalformedPacket):
            read(bytes([identifier, 0, 0, 0, 0]), packet)


@table(("identifier", "name"), REPEATABLE, ids=str)
def test_a_property_that_comes_more_than_once(identifier: int, name: str) -> None:
    _, value, expected = TABLE_2_4[identifier]
    properties = read((bytes([identifier]) + value) * 3, PACKETS[name])
    assert isinstance(expected, tuple)
    assert getattr(properties, PROPERTIES[identifier].name) == expected * 3


@table(("identifier", "name"), [pair for pair in ALLOWED_PAIRS if pair not in REPEATABLE], ids=str)
def test_any_other_property_comes_once(identifier: int, name: str) -> None:
    raw = (bytes([identifier]) + TABLE_2_4[identifier][1]) * 2
    with pytest.raises(ProtocolError) as raised:
        read(raw, PACKETS[name])
    assert raised.value.reason == f"{PROPERTIES[identifier].name} is there twice"
