"""CONNECT."""

from gateway.mqtt.packets import Connect, Will
from gateway.mqtt.properties import Properties
from tests.mqtt.cases.case import (
    TOPIC_NAME,
    UNKNOWN,
    VERSION,
    PacketCase,
    malformed,
    protocol_error,
)

PACKETS = [
    PacketCase(
        "connect, MQTT 3.1",
        3,
        b"\x10\x10\x00\x06MQIsdp\x03\x02\x00\x0a\x00\x02c1",
        Connect("c1", 3, keep_alive=10),
    ),
    PacketCase(
        "connect, MQTT 3.1, the flagged user name and password left out",
        3,
        b"\x10\x10\x00\x06MQIsdp\x03\xc2\x00\x0a\x00\x02c1",
        Connect("c1", 3, keep_alive=10),
        shortest=False,
    ),
    PacketCase(
        "connect, MQTT 3.1, the flagged password left out",
        3,
        b"\x10\x13\x00\x06MQIsdp\x03\xc2\x00\x0a\x00\x02c1\x00\x01u",
        Connect("c1", 3, keep_alive=10, username="u"),
        shortest=False,
    ),
    PacketCase(
        "connect, MQTT 3.1, a bridge",
        3,
        b"\x10\x10\x00\x06MQIsdp\x83\x02\x00\x00\x00\x02c1",
        Connect("c1", 3, bridge=True),
    ),
    PacketCase(
        "connect, MQTT 3.1.1, a bridge",
        4,
        b"\x10\x0e\x00\x04MQTT\x84\x02\x00\x00\x00\x02c1",
        Connect("c1", 4, bridge=True),
    ),
    PacketCase(
        "connect, MQTT 3.1.1, the least",
        4,
        b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00",
        Connect("", 4),
    ),
    PacketCase(
        "connect, MQTT 3.1.1, an older session wanted",
        4,
        b"\x10\x0d\x00\x04MQTT\x04\x00\xff\xff\x00\x01c",
        Connect("c", 4, clean_start=False, keep_alive=65535),
    ),
    PacketCase(
        "connect, MQTT 3.1.1, everything",
        4,
        b"\x10\x1b\x00\x04MQTT\x04\xee\x00\x3c\x00\x01c\x00\x03w/t\x00\x00\x00\x01u\x00\x02\x00\xff",
        Connect("c", 4, True, 60, "u", b"\x00\xff", Will("w/t", b"", 1, True)),
    ),
    PacketCase(
        "connect, MQTT 3.1.1, user name alone, will of QoS 2",
        4,
        b"\x10\x15\x00\x04MQTT\x04\x94\x00\x00\x00\x01c\x00\x01w\x00\x01x\x00\x00",
        Connect("c", 4, clean_start=False, username="", will=Will("w", b"x", 2)),
    ),
    PacketCase(
        "connect, MQTT 5, the least",
        5,
        b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00",
        Connect(),
    ),
    PacketCase(
        "connect, MQTT 5, a password without a user name",
        5,
        b"\x10\x10\x00\x04MQTT\x05\x42\x00\x00\x00\x00\x00\x00\x01p",
        Connect(password=b"p"),
    ),
    PacketCase(
        "connect, MQTT 5, every property",
        5,
        b"\x10\x36\x00\x04MQTT\x05\x02\x00\x1e"
        b"\x28"
        b"\x11\xff\xff\xff\xff"
        b"\x15\x00\x05PLAIN"
        b"\x16\x00\x02\x00u"
        b"\x17\x00"
        b"\x19\x01"
        b"\x21\x00\x14"
        b"\x22\x00\x0a"
        b"\x26\x00\x01k\x00\x01v"
        b"\x27\x00\x10\x00\x00"
        b"\x00\x01c",
        Connect(
            "c",
            keep_alive=30,
            properties=Properties(
                session_expiry_interval=0xFFFFFFFF,
                authentication_method="PLAIN",
                authentication_data=b"\x00u",
                request_problem_information=0,
                request_response_information=1,
                receive_maximum=20,
                topic_alias_maximum=10,
                user_properties=(("k", "v"),),
                maximum_packet_size=1 << 20,
            ),
        ),
    ),
    PacketCase(
        "connect, MQTT 5, a will with every property",
        5,
        b"\x10\x3a\x00\x04MQTT\x05\x2e\x00\x00\x00\x00\x01c"
        b"\x22"
        b"\x01\x01"
        b"\x02\x00\x00\x00\x3c"
        b"\x03\x00\x01t"
        b"\x08\x00\x03r/t"
        b"\x09\x00\x02\x01\x02"
        b"\x18\x00\x00\x00\x05"
        b"\x26\x00\x01k\x00\x01v"
        b"\x00\x01w\x00\x04gone",
        Connect(
            "c",
            will=Will(
                "w",
                b"gone",
                1,
                True,
                Properties(
                    payload_format_indicator=1,
                    message_expiry_interval=60,
                    content_type="t",
                    response_topic="r/t",
                    correlation_data=b"\x01\x02",
                    will_delay_interval=5,
                    user_properties=(("k", "v"),),
                ),
            ),
        ),
    ),
]

_MQTT_4 = b"\x00\x04MQTT\x04"
_MQTT_5 = b"\x00\x04MQTT\x05"
_WILL_5 = _MQTT_5 + b"\x06\x00\x00\x00\x00\x00"  # no client identifier, then the will

MALFORMED = [
    malformed("nothing", UNKNOWN, 0x10, b""),
    malformed("protocol name cut", UNKNOWN, 0x10, b"\x00\x04MQT"),
    malformed("protocol name not UTF-8", UNKNOWN, 0x10, b"\x00\x01\xff\x04"),
    malformed(
        "another protocol name", UNKNOWN, 0x10, b"\x00\x04HTTP\x04\x02\x00\x00\x00\x00", VERSION
    ),
    malformed("no version", UNKNOWN, 0x10, b"\x00\x04MQTT"),
    protocol_error("MQTT 6", UNKNOWN, 0x10, b"\x00\x04MQTT\x06\x02\x00\x00\x00\x00", VERSION),
    protocol_error(
        "a bridge of MQTT 5", UNKNOWN, 0x10, b"\x00\x04MQTT\x85\x02\x00\x00\x00\x00\x00", VERSION
    ),
    protocol_error("MQIsdp 4", UNKNOWN, 0x10, b"\x00\x06MQIsdp\x04\x02\x00\x00\x00\x01c", VERSION),
    malformed("no flags", UNKNOWN, 0x10, _MQTT_4),
    malformed("reserved flag", UNKNOWN, 0x10, _MQTT_4 + b"\x03\x00\x00\x00\x00"),
    malformed("will QoS 3", UNKNOWN, 0x10, _MQTT_4 + b"\x1e\x00\x00\x00\x00\x00\x01w\x00\x00"),
    malformed("will QoS without a will", UNKNOWN, 0x10, _MQTT_4 + b"\x0a\x00\x00\x00\x00"),
    malformed("will retain without a will", UNKNOWN, 0x10, _MQTT_5 + b"\x22\x00\x00\x00\x00\x00"),
    malformed(
        "a password without a user name", UNKNOWN, 0x10, _MQTT_4 + b"\x42\x00\x00\x00\x00\x00\x01p"
    ),
    malformed("no client identifier", UNKNOWN, 0x10, _MQTT_4 + b"\x02\x00\x00"),
    malformed("no properties", UNKNOWN, 0x10, _MQTT_5 + b"\x02\x00\x00"),
    malformed("no client identifier, MQTT 5", UNKNOWN, 0x10, _MQTT_5 + b"\x02\x00\x00\x00"),
    malformed("client identifier not UTF-8", UNKNOWN, 0x10, _MQTT_4 + b"\x02\x00\x00\x00\x01\xc3"),
    malformed("no will topic", UNKNOWN, 0x10, _MQTT_4 + b"\x06\x00\x00\x00\x00"),
    malformed("no will payload", UNKNOWN, 0x10, _MQTT_4 + b"\x06\x00\x00\x00\x00\x00\x01w"),
    protocol_error(
        "will topic with a wildcard",
        UNKNOWN,
        0x10,
        _MQTT_4 + b"\x06\x00\x00\x00\x00\x00\x03w/+\x00\x00",
        TOPIC_NAME,
    ),
    protocol_error(
        "will topic empty", UNKNOWN, 0x10, _WILL_5 + b"\x00\x00\x00\x00\x00", TOPIC_NAME
    ),
    protocol_error(
        "a will's response topic with a wildcard",
        UNKNOWN,
        0x10,
        _WILL_5 + b"\x04\x08\x00\x01#\x00\x01w\x00\x00",
        TOPIC_NAME,
    ),
    malformed(
        "a session expiry among those of the will",
        UNKNOWN,
        0x10,
        _WILL_5 + b"\x05\x11\x00\x00\x00\x01\x00\x01w\x00\x00",
    ),
    malformed("no user name", UNKNOWN, 0x10, _MQTT_4 + b"\x82\x00\x00\x00\x00"),
    malformed("no password", UNKNOWN, 0x10, _MQTT_4 + b"\xc2\x00\x00\x00\x00\x00\x01u"),
    malformed("more than the flags say", UNKNOWN, 0x10, _MQTT_4 + b"\x02\x00\x00\x00\x00\x00\x01u"),
    protocol_error(
        "authentication data without a method",
        UNKNOWN,
        0x10,
        _MQTT_5 + b"\x02\x00\x00\x04\x16\x00\x01d\x00\x00",
    ),
]
