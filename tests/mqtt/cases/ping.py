"""PINGREQ and PINGRESP."""

from gateway.mqtt.packets import PingReq, PingResp
from tests.mqtt.cases.case import ALL, PacketCase, malformed

PACKETS = [
    PacketCase("pingreq", 4, b"\xc0\x00", PingReq()),
    PacketCase("pingresp", 4, b"\xd0\x00", PingResp()),
    PacketCase(
        "pingreq, its remaining length padded",
        4,
        b"\xc0\x80\x80\x80\x00",
        PingReq(),
        shortest=False,
    ),
]

MALFORMED = [
    malformed("pingreq with a body", ALL, 0xC0, b"\x00"),
    malformed("pingresp with a body", ALL, 0xD0, b"\x00"),
]
