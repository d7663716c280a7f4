"""PUBACK, PUBREC, PUBREL and PUBCOMP."""

from gateway.mqtt.packets import PubAck, PubComp, PubRec, PubRel
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import ALL, BEFORE_5, ONLY_5, PacketCase, malformed, protocol_error

PACKETS = [
    PacketCase("puback", 4, b"\x40\x02\x00\x01", PubAck(1)),
    PacketCase("pubrec", 3, b"\x50\x02\x00\x02", PubRec(2)),
    PacketCase("pubrel", 4, b"\x62\x02\x01\x00", PubRel(256)),
    PacketCase("pubcomp", 4, b"\x70\x02\xff\xff", PubComp(65535)),
    PacketCase("puback, MQTT 5", 5, b"\x40\x02\x00\x01", PubAck(1)),
    PacketCase(
        "puback, MQTT 5, success spelled out", 5, b"\x40\x03\x00\x01\x00", PubAck(1), shortest=False
    ),
    PacketCase(
        "puback, MQTT 5, success and no properties spelled out",
        5,
        b"\x40\x04\x00\x01\x00\x00",
        PubAck(1),
        shortest=False,
    ),
    PacketCase(
        "puback, MQTT 5, nobody subscribes",
        5,
        b"\x40\x03\x00\x01\x10",
        PubAck(1, ReasonCode.NO_MATCHING_SUBSCRIBERS),
    ),
    PacketCase(
        "puback, MQTT 5, every property",
        5,
        b"\x40\x10\x00\x01\x97\x0c\x1f\x00\x02no\x26\x00\x01k\x00\x01v",
        PubAck(
            1,
            ReasonCode.QUOTA_EXCEEDED,
            Properties(reason_string="no", user_properties=(("k", "v"),)),
        ),
    ),
    PacketCase(
        "pubrec, MQTT 5, refused", 5, b"\x50\x03\x00\x01\x87", PubRec(1, ReasonCode.NOT_AUTHORIZED)
    ),
    PacketCase(
        "pubrel, MQTT 5, unknown packet identifier",
        5,
        b"\x62\x03\x00\x01\x92",
        PubRel(1, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND),
    ),
    PacketCase(
        "pubcomp, MQTT 5, success with a reason string",
        5,
        b"\x70\x08\x00\x01\x00\x04\x1f\x00\x01s",
        PubComp(1, ReasonCode.SUCCESS, Properties(reason_string="s")),
    ),
]

MALFORMED = [
    case
    for name, first_byte in (
        ("puback", 0x40),
        ("pubrec", 0x50),
        ("pubrel", 0x62),
        ("pubcomp", 0x70),
    )
    for case in (
        malformed(f"{name} of nothing", ALL, first_byte, b""),
        malformed(f"{name} with half a packet identifier", ALL, first_byte, b"\x01"),
        protocol_error(f"{name} with packet identifier 0", ALL, first_byte, b"\x00\x00"),
        malformed(f"{name} with a reason code", BEFORE_5, first_byte, b"\x00\x01\x00"),
        malformed(f"{name} with an unknown reason code", ONLY_5, first_byte, b"\x00\x01\x01"),
        malformed(
            f"{name} with properties cut", ONLY_5, first_byte, b"\x00\x01\x00\x04\x1f\x00\x01"
        ),
        malformed(f"{name} with excess bytes", ONLY_5, first_byte, b"\x00\x01\x00\x00\x00"),
    )
]
