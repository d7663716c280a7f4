"""CONNACK."""

from gateway.mqtt.packets import ConnAck
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import ALL, BEFORE_5, ONLY_5, PacketCase, malformed, protocol_error

RETURN_CODES = [
    ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
    ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
    ReasonCode.SERVER_UNAVAILABLE,
    ReasonCode.BAD_USER_NAME_OR_PASSWORD,
    ReasonCode.NOT_AUTHORIZED,
]
"""Table 3.1 of MQTT 3.1.1, from 1 on."""

PACKETS = [
    PacketCase("connack, MQTT 3.1", 3, b"\x20\x02\x00\x00", ConnAck()),
    PacketCase("connack, session present", 4, b"\x20\x02\x01\x00", ConnAck(True)),
    *(
        PacketCase(f"connack, {code.name}", 4, bytes([0x20, 2, 0, number]), ConnAck(False, code))
        for number, code in enumerate(RETURN_CODES, 1)
    ),
    PacketCase("connack, MQTT 5", 5, b"\x20\x03\x01\x00\x00", ConnAck(True)),
    PacketCase(
        "connack, MQTT 5, banned", 5, b"\x20\x03\x00\x8a\x00", ConnAck(False, ReasonCode.BANNED)
    ),
    PacketCase(
        "connack, MQTT 5, every property",
        5,
        b"\x20\x4b\x00\x00"
        b"\x48"
        b"\x11\x00\x00\x00\x0a"
        b"\x12\x00\x03a-1"
        b"\x13\x00\x3c"
        b"\x15\x00\x01m"
        b"\x16\x00\x01d"
        b"\x1a\x00\x01i"
        b"\x1c\x00\x03s:1"
        b"\x1f\x00\x02ok"
        b"\x21\x00\x14"
        b"\x22\x00\x0a"
        b"\x24\x01"
        b"\x25\x01"
        b"\x26\x00\x01k\x00\x01v"
        b"\x26\x00\x01k\x00\x01w"
        b"\x27\x00\x10\x00\x00"
        b"\x28\x01"
        b"\x29\x00"
        b"\x2a\x01",
        ConnAck(
            properties=Properties(
                session_expiry_interval=10,
                assigned_client_identifier="a-1",
                server_keep_alive=60,
                authentication_method="m",
                authentication_data=b"d",
                response_information="i",
                server_reference="s:1",
                reason_string="ok",
                receive_maximum=20,
                topic_alias_maximum=10,
                maximum_qos=1,
                retain_available=1,
                user_properties=(("k", "v"), ("k", "w")),
                maximum_packet_size=1 << 20,
                wildcard_subscription_available=1,
                subscription_identifier_available=0,
                shared_subscription_available=1,
            )
        ),
    ),
]

MALFORMED = [
    malformed("connack of nothing", ALL, 0x20, b""),
    malformed("connack of one byte", ALL, 0x20, b"\x00"),
    malformed("connack with a reserved flag", ALL, 0x20, b"\x02\x00\x00"),
    malformed("connack with session present, MQTT 3.1", (3,), 0x20, b"\x01\x00"),
    malformed("connack with return code 6", BEFORE_5, 0x20, b"\x00\x06"),
    malformed("connack with excess bytes", BEFORE_5, 0x20, b"\x00\x00\x00"),
    malformed("connack without properties", ONLY_5, 0x20, b"\x00\x00"),
    malformed("connack with a return code of 3.1.1", ONLY_5, 0x20, b"\x00\x05\x00"),
    malformed("connack with excess bytes, MQTT 5", ONLY_5, 0x20, b"\x00\x00\x00\x00"),
    protocol_error("connack with maximum QoS 2", ONLY_5, 0x20, b"\x00\x00\x02\x24\x02"),
]
