"""First bytes that no packet has, and packets before CONNECT."""

from tests.mqtt.cases.case import ALL, BEFORE_5, ONLY_5, UNKNOWN, malformed, protocol_error

MALFORMED = [
    malformed("reserved packet type 0", ALL, 0x00, b""),
    malformed("auth before MQTT 5", BEFORE_5, 0xF0, b""),
    malformed("connect with a flag", (0, 4, 5), 0x11, b"\x00\x04MQTT\x04\x02\x00\x00\x00\x00"),
    malformed("connack with a flag", ALL, 0x28, b"\x00\x00"),
    malformed("puback with a flag", ALL, 0x42, b"\x00\x01"),
    malformed("pubrec with a flag", ALL, 0x54, b"\x00\x01"),
    malformed("pubrel without its flag", ALL, 0x60, b"\x00\x01"),
    malformed("pubrel with another flag", ALL, 0x63, b"\x00\x01"),
    malformed("pubcomp with a flag", ALL, 0x71, b"\x00\x01"),
    malformed("subscribe without its flag", BEFORE_5, 0x80, b"\x00\x01\x00\x01t\x00"),
    malformed("subscribe with another flag", ONLY_5, 0x8A, b"\x00\x01\x00\x00\x01t\x00"),
    malformed("suback with a flag", ALL, 0x91, b"\x00\x01\x00"),
    malformed("unsubscribe without its flag", BEFORE_5, 0xA0, b"\x00\x01\x00\x01t"),
    malformed("unsuback with a flag", ALL, 0xB2, b"\x00\x01"),
    malformed("pingreq with a flag", ALL, 0xC1, b""),
    malformed("pingresp with a flag", ALL, 0xD8, b""),
    malformed("disconnect with a flag", ALL, 0xE2, b""),
    malformed("auth with a flag", ONLY_5, 0xF1, b""),
    protocol_error("a publish before connect", UNKNOWN, 0x30, b"\x00\x01t"),
    protocol_error("a ping before connect", UNKNOWN, 0xC0, b""),
    protocol_error("type 0 before connect", UNKNOWN, 0x00, b""),
]
