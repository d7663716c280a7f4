"""UNSUBSCRIBE and UNSUBACK."""

from gateway.mqtt.packets import UnsubAck, Unsubscribe
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import ALL, BEFORE_5, ONLY_5, PacketCase, malformed, protocol_error

PACKETS = [
    PacketCase("unsubscribe", 4, b"\xa2\x05\x00\x02\x00\x01#", Unsubscribe(2, ["#"])),
    PacketCase(
        "unsubscribe, MQTT 5, a property and two topic filters",
        5,
        b"\xa2\x10\x00\x02\x07\x26\x00\x01k\x00\x01v\x00\x01a\x00\x01b",
        Unsubscribe(2, ["a", "b"], Properties(user_properties=(("k", "v"),))),
    ),
    PacketCase("unsuback", 4, b"\xb0\x02\x00\x02", UnsubAck(2)),
    PacketCase(
        "unsuback, MQTT 5",
        5,
        b"\xb0\x05\x00\x02\x00\x00\x11",
        UnsubAck(2, [ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED]),
    ),
    PacketCase(
        "unsuback, MQTT 5, a property",
        5,
        b"\xb0\x08\x00\x02\x04\x1f\x00\x01r\x87",
        UnsubAck(2, [ReasonCode.NOT_AUTHORIZED], Properties(reason_string="r")),
    ),
]

MALFORMED = [
    malformed("unsubscribe of nothing", ALL, 0xA2, b""),
    protocol_error("unsubscribe with packet identifier 0", ALL, 0xA2, b"\x00\x00\x00\x01t"),
    protocol_error("unsubscribe without a topic filter", BEFORE_5, 0xA2, b"\x00\x01"),
    protocol_error("unsubscribe without a topic filter, MQTT 5", ONLY_5, 0xA2, b"\x00\x01\x00"),
    malformed("unsubscribe with half a length", BEFORE_5, 0xA2, b"\x00\x01\x00\x01t\x00"),
    malformed("unsubscribe from nothing", BEFORE_5, 0xA2, b"\x00\x01\x00\x00"),
    malformed(
        "unsubscribe, second topic filter empty", ONLY_5, 0xA2, b"\x00\x01\x00\x00\x01t\x00\x00"
    ),
    malformed(
        "unsubscribe, first topic filter invalid", BEFORE_5, 0xA2, b"\x00\x01\x00\x02a#\x00\x01t"
    ),
    malformed("unsuback with a reason code", BEFORE_5, 0xB0, b"\x00\x01\x00"),
    malformed("unsuback without a reason code", ONLY_5, 0xB0, b"\x00\x01\x00"),
    malformed("unsuback with a code of suback", ONLY_5, 0xB0, b"\x00\x01\x00\x01"),
    protocol_error("unsuback with packet identifier 0", ALL, 0xB0, b"\x00\x00"),
]
