"""All properties: what each holds and which packets may have it (table 2-4)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from gateway.mqtt.codec import fields
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import PacketType
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_topic_name

WILL = 0
"""The will in a CONNECT has properties of its own; 0 is no packet's type."""


class Kind(NamedTuple):
    """A data type: its reader and its writer from `fields`."""

    read: Callable[[bytes, int, int, str], tuple[Any, int]]
    write: Callable[[Any], bytes]


class Property(NamedTuple):
    """A property's field in Properties, its data type and the packets that may have it.

    A value below `minimum` is a protocol error with `reason_code`. `repeated_in` are the packets
    that may repeat it; if there are any, its field is a tuple.
    """

    name: str
    kind: Kind
    packets: frozenset[int]
    minimum: int = 0
    reason_code: ReasonCode = ReasonCode.PROTOCOL_ERROR
    repeated_in: frozenset[int] = frozenset()


def _read_flag(buffer: bytes, position: int, end: int, name: str) -> tuple[int, int]:
    value, position = fields.read_byte(buffer, position, end, name)
    if value > 1:
        raise ProtocolError(f"{name} {value}; it must be 0 or 1")
    return value, position


def _read_topic_name(buffer: bytes, position: int, end: int, name: str) -> tuple[str, int]:
    topic, position = fields.read_string(buffer, position, end, name)
    check_topic_name(topic)  # [MQTT-3.3.2-14]
    return topic, position


FLAG = Kind(_read_flag, fields.write_byte)
TWO_BYTES = Kind(fields.read_two_byte_integer, fields.write_two_byte_integer)
FOUR_BYTES = Kind(fields.read_four_byte_integer, fields.write_four_byte_integer)
VARIABLE = Kind(fields.read_variable_byte_integer, fields.write_variable_byte_integer)
STRING = Kind(fields.read_string, fields.write_string)
TOPIC_NAME = Kind(_read_topic_name, fields.write_string)
BINARY = Kind(fields.read_binary, fields.write_binary)
PAIR = Kind(fields.read_string_pair, fields.write_string_pair)

_MESSAGE = frozenset({PacketType.PUBLISH, WILL})
_CONNACK = frozenset({PacketType.CONNACK})
_BOTH_WAYS = frozenset({PacketType.CONNECT, PacketType.CONNACK})
_METHOD = frozenset({PacketType.CONNECT, PacketType.CONNACK, PacketType.AUTH})
_EXPIRY = frozenset({PacketType.CONNECT, PacketType.CONNACK, PacketType.DISCONNECT})
_ACKNOWLEDGEMENTS = frozenset(
    {
        PacketType.PUBACK,
        PacketType.PUBREC,
        PacketType.PUBREL,
        PacketType.PUBCOMP,
        PacketType.SUBACK,
        PacketType.UNSUBACK,
    }
)
_ANSWERS = _ACKNOWLEDGEMENTS | {PacketType.CONNACK, PacketType.DISCONNECT, PacketType.AUTH}
_ALL = _ANSWERS | {
    WILL,
    PacketType.CONNECT,
    PacketType.PUBLISH,
    PacketType.SUBSCRIBE,
    PacketType.UNSUBSCRIBE,
}

PROPERTIES: dict[int, Property] = {
    0x01: Property("payload_format_indicator", FLAG, _MESSAGE),
    0x02: Property("message_expiry_interval", FOUR_BYTES, _MESSAGE),
    0x03: Property("content_type", STRING, _MESSAGE),
    0x08: Property("response_topic", TOPIC_NAME, _MESSAGE),
    0x09: Property("correlation_data", BINARY, _MESSAGE),
    0x0B: Property(
        "subscription_identifiers",
        VARIABLE,
        frozenset({PacketType.PUBLISH, PacketType.SUBSCRIBE}),
        minimum=1,
        repeated_in=frozenset({PacketType.PUBLISH}),
    ),
    0x11: Property("session_expiry_interval", FOUR_BYTES, _EXPIRY),
    0x12: Property("assigned_client_identifier", STRING, _CONNACK),
    0x13: Property("server_keep_alive", TWO_BYTES, _CONNACK),
    0x15: Property("authentication_method", STRING, _METHOD),
    0x16: Property("authentication_data", BINARY, _METHOD),
    0x17: Property("request_problem_information", FLAG, frozenset({PacketType.CONNECT})),
    0x18: Property("will_delay_interval", FOUR_BYTES, frozenset({WILL})),
    0x19: Property("request_response_information", FLAG, frozenset({PacketType.CONNECT})),
    0x1A: Property("response_information", STRING, _CONNACK),
    0x1C: Property(
        "server_reference", STRING, frozenset({PacketType.CONNACK, PacketType.DISCONNECT})
    ),
    0x1F: Property("reason_string", STRING, _ANSWERS),
    0x21: Property("receive_maximum", TWO_BYTES, _BOTH_WAYS, minimum=1),
    0x22: Property("topic_alias_maximum", TWO_BYTES, _BOTH_WAYS),
    0x23: Property(
        "topic_alias",
        TWO_BYTES,
        frozenset({PacketType.PUBLISH}),
        minimum=1,  # [MQTT-3.3.2-8]
        reason_code=ReasonCode.TOPIC_ALIAS_INVALID,
    ),
    0x24: Property("maximum_qos", FLAG, _CONNACK),
    0x25: Property("retain_available", FLAG, _CONNACK),
    0x26: Property("user_properties", PAIR, _ALL, repeated_in=_ALL),
    0x27: Property("maximum_packet_size", FOUR_BYTES, _BOTH_WAYS, minimum=1),
    0x28: Property("wildcard_subscription_available", FLAG, _CONNACK),
    0x29: Property("subscription_identifier_available", FLAG, _CONNACK),
    0x2A: Property("shared_subscription_available", FLAG, _CONNACK),
}

ALLOWED: dict[int, dict[int, Property]] = {
    packet: {identifier: row for identifier, row in PROPERTIES.items() if packet in row.packets}
    for packet in _ALL
}
"""The rows of PROPERTIES by the packet (or WILL) that may have them."""
