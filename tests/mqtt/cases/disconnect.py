"""DISCONNECT."""

from gateway.mqtt.packets import Disconnect
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import BEFORE_5, ONLY_5, PacketCase, malformed

PACKETS = [
    PacketCase("disconnect", 4, b"\xe0\x00", Disconnect()),
    PacketCase("disconnect, MQTT 5", 5, b"\xe0\x00", Disconnect()),
    PacketCase(
        "disconnect, MQTT 5, normal spelled out", 5, b"\xe0\x01\x00", Disconnect(), shortest=False
    ),
    PacketCase(
        "disconnect, MQTT 5, with the will",
        5,
        b"\xe0\x01\x04",
        Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE),
    ),
    PacketCase(
        "disconnect, MQTT 5, every property",
        5,
        b"\xe0\x18\x9d\x16\x11\x00\x00\x00\x00\x1c\x00\x01s\x1f\x00\x03why\x26\x00\x01k\x00\x01v",
        Disconnect(
            ReasonCode.SERVER_MOVED,
            Properties(
                session_expiry_interval=0,
                server_reference="s",
                reason_string="why",
                user_properties=(("k", "v"),),
            ),
        ),
    ),
]

MALFORMED = [
    malformed("disconnect with a body", BEFORE_5, 0xE0, b"\x00"),
    malformed("disconnect with an unknown reason code", ONLY_5, 0xE0, b"\x01"),
    malformed("disconnect with excess bytes", ONLY_5, 0xE0, b"\x00\x00\x00"),
]
