"""AUTH."""

from gateway.mqtt.packets import Auth
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import ONLY_5, PacketCase, malformed, protocol_error

PACKETS = [
    PacketCase("auth, success", 5, b"\xf0\x00", Auth()),
    PacketCase(
        "auth, every property",
        5,
        b"\xf0\x15\x18\x13\x15\x00\x01m\x16\x00\x01d\x1f\x00\x01r\x26\x00\x01k\x00\x01v",
        Auth(
            ReasonCode.CONTINUE_AUTHENTICATION,
            Properties(
                authentication_method="m",
                authentication_data=b"d",
                reason_string="r",
                user_properties=(("k", "v"),),
            ),
        ),
    ),
]

MALFORMED = [
    malformed("auth with an unknown reason code", ONLY_5, 0xF0, b"\x10\x00"),
    malformed("auth with excess bytes", ONLY_5, 0xF0, b"\x18\x00\x00"),
    protocol_error("auth without a method", ONLY_5, 0xF0, b"\x18\x00"),
    protocol_error("auth of one byte", ONLY_5, 0xF0, b"\x18"),
    protocol_error("auth with data and no method", ONLY_5, 0xF0, b"\x19\x04\x16\x00\x01d"),
]
