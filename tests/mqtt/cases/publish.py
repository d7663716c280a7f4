"""PUBLISH."""

from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from tests.mqtt.cases.case import (
    ALL,
    BEFORE_5,
    ONLY_5,
    TOPIC_NAME,
    PacketCase,
    malformed,
    protocol_error,
)

PACKETS = [
    PacketCase("publish, empty payload", 4, b"\x30\x03\x00\x01t", Publish("t")),
    PacketCase("publish, QoS 0", 4, b"\x30\x06\x00\x03a/bx", Publish("a/b", b"x")),
    PacketCase("publish, retained", 3, b"\x31\x04\x00\x01tx", Publish("t", b"x", retain=True)),
    PacketCase(
        "publish, QoS 1", 4, b"\x32\x06\x00\x01t\x00\x0ax", Publish("t", b"x", 1, packet_id=10)
    ),
    PacketCase(
        "publish, QoS 2, DUP and RETAIN",
        4,
        b"\x3d\x06\x00\x01t\xff\xffx",
        Publish("t", b"x", 2, True, True, 65535),
    ),
    PacketCase(
        "publish, a topic of three kinds of characters",
        4,
        b"\x30\x0b\x00\x09\xc2\xb0/\xe2\x82\xac/ $",
        Publish("°/€/ $"),
    ),
    PacketCase(
        "publish, a byte order mark is a character",
        4,
        b"\x30\x06\x00\x04\xef\xbb\xbft",
        Publish("\ufefft"),
    ),
    PacketCase(
        "publish, remaining length of two bytes",
        4,
        b"\x30\x80\x01\x00\x01t" + b"x" * 125,
        Publish("t", b"x" * 125),
    ),
    PacketCase(
        "publish, remaining length of three bytes",
        4,
        b"\x30\x80\x80\x01\x00\x01t" + b"x" * 16381,
        Publish("t", b"x" * 16381),
    ),
    PacketCase("publish, MQTT 5, QoS 0", 5, b"\x30\x05\x00\x01t\x00x", Publish("t", b"x")),
    PacketCase(
        "publish, MQTT 5, QoS 1, empty payload",
        5,
        b"\x32\x06\x00\x01t\x00\x01\x00",
        Publish("t", b"", 1, packet_id=1),
    ),
    PacketCase(
        "publish, MQTT 5, an alias for a topic name",
        5,
        b"\x30\x07\x00\x00\x03\x23\x00\x02x",
        Publish("", b"x", properties=Properties(topic_alias=2)),
    ),
    PacketCase(
        "publish, MQTT 5, every property",
        5,
        b"\x34\x2f\x00\x01t\x01\x00"
        b"\x28"
        b"\x01\x00"
        b"\x02\x00\x00\x00\x00"
        b"\x03\x00\x00"
        b"\x08\x00\x01r"
        b"\x09\x00\x01c"
        b"\x0b\x01"
        b"\x0b\xff\xff\xff\x7f"
        b"\x23\x00\x01"
        b"\x26\x00\x01k\x00\x01v"
        b"\x26\x00\x00\x00\x00"
        b"x",
        Publish(
            "t",
            b"x",
            2,
            packet_id=256,
            properties=Properties(
                payload_format_indicator=0,
                message_expiry_interval=0,
                content_type="",
                response_topic="r",
                correlation_data=b"c",
                subscription_identifiers=(1, 268_435_455),
                topic_alias=1,
                user_properties=(("k", "v"), ("", "")),
            ),
        ),
    ),
]

_PUBLISH_5 = b"\x00\x01t"

MALFORMED = [
    malformed("publish of QoS 3", ALL, 0x36, b"\x00\x01t\x00\x01\x00"),
    malformed("publish with DUP at QoS 0", ALL, 0x38, b"\x00\x01t\x00"),
    malformed("publish of nothing", ALL, 0x30, b""),
    malformed("publish with its topic cut", ALL, 0x30, b"\x00\x02t"),
    malformed("publish without a packet identifier", ALL, 0x32, b"\x00\x01t"),
    protocol_error("publish with packet identifier 0", ALL, 0x32, b"\x00\x01t\x00\x00\x00"),
    protocol_error("publish to a + wildcard", ALL, 0x30, b"\x00\x03t/+\x00", TOPIC_NAME),
    protocol_error("publish to a # wildcard", ALL, 0x31, b"\x00\x02t#\x00", TOPIC_NAME),
    protocol_error("publish to the empty topic", BEFORE_5, 0x30, b"\x00\x00x", TOPIC_NAME),
    protocol_error("publish to the empty topic without an alias", ONLY_5, 0x30, b"\x00\x00\x00x"),
    malformed("topic with U+0000", ALL, 0x30, b"\x00\x03t\x00t\x00"),
    malformed("topic not UTF-8: no lead byte", ALL, 0x30, b"\x00\x01\x80\x00"),
    malformed("topic not UTF-8: cut", ALL, 0x30, b"\x00\x02\xe2\x82\x00"),
    malformed("publish without properties", ONLY_5, 0x30, _PUBLISH_5),
    malformed(
        "properties beyond the packet", ONLY_5, 0x30, _PUBLISH_5 + b"\x06\x02\x00\x00\x00\x01"
    ),
    malformed(
        "properties that the next packet would complete",
        ONLY_5,
        0x30,
        _PUBLISH_5 + b"\x07\x02\x00\x00\x00\x01",
    ),
    protocol_error(
        "response topic with a wildcard",
        ONLY_5,
        0x30,
        _PUBLISH_5 + b"\x06\x08\x00\x03r/+",
        TOPIC_NAME,
    ),
    protocol_error(
        "response topic empty", ONLY_5, 0x30, _PUBLISH_5 + b"\x03\x08\x00\x00", TOPIC_NAME
    ),
]
