"""The control packets of MQTT 3.1, 3.1.1 and 5 as plain objects, and their sizes in memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode

MQTT_3_1 = 3
MQTT_3_1_1 = 4
MQTT_5 = 5


class PacketType(IntEnum):
    """The high four bits of a packet's first byte (MQTT 5, table 2-1)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


@dataclass(slots=True)
class Will:
    """The message that the server publishes when a connection ends abnormally (section 3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Connect:
    """A client's request for a connection (section 3.1); `protocol_version` is 3, 4 or 5.

    A `bridge` is another broker, identified by BRIDGE_BIT; MQTT 5 has subscription options instead.
    """

    client_id: str = ""
    protocol_version: int = MQTT_5
    clean_start: bool = True
    keep_alive: int = 0
    username: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = NO_PROPERTIES
    bridge: bool = False


@dataclass(slots=True)
class ConnAck:
    """The server's answer to CONNECT (section 3.2)."""

    session_present: bool = False
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Publish:
    """An application message (section 3.3); `packet_id` is 0 at QoS 0."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class _Acknowledgement:
    packet_id: int
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


class PubAck(_Acknowledgement):
    """The answer to a QoS 1 PUBLISH (section 3.4)."""

    __slots__ = ()


class PubRec(_Acknowledgement):
    """The first answer to a QoS 2 PUBLISH (section 3.5)."""

    __slots__ = ()


class PubRel(_Acknowledgement):
    """The publisher's answer to PUBREC (section 3.6)."""

    __slots__ = ()


class PubComp(_Acknowledgement):
    """The last packet of a QoS 2 exchange (section 3.7)."""

    __slots__ = ()


@dataclass(slots=True)
class SubscriptionRequest:
    """One topic filter of a SUBSCRIBE with its options (section 3.8.3.1)."""

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(slots=True)
class Subscribe:
    """A client's request for messages (section 3.8)."""

    packet_id: int
    requests: Iterable[SubscriptionRequest]
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class SubAck:
    """The answer to SUBSCRIBE: one reason code for each topic filter (section 3.9)."""

    packet_id: int
    reason_codes: list[ReasonCode]
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Unsubscribe:
    """A client's request to remove topic filters (section 3.10)."""

    packet_id: int
    topic_filters: Iterable[str]
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class UnsubAck:
    """The answer to UNSUBSCRIBE (section 3.11); MQTT 3.1.1 sends no reason codes."""

    packet_id: int
    reason_codes: list[ReasonCode] = field(default_factory=list)
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class PingReq:
    """A client shows that it is alive (section 3.12)."""


@dataclass(slots=True)
class PingResp:
    """The answer to PINGREQ (section 3.13)."""


@dataclass(slots=True)
class Disconnect:
    """The last packet of a connection (section 3.14); the server sends it only in MQTT 5."""

    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Auth:
    """A step of enhanced authentication (section 3.15)."""

    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


Packet = (
    Connect
    | ConnAck
    | Publish
    | PubAck
    | PubRec
    | PubRel
    | PubComp
    | Subscribe
    | SubAck
    | Unsubscribe
    | UnsubAck
    | PingReq
    | PingResp
    | Disconnect
    | Auth
)


MESSAGE_OVERHEAD = 416
"""Bytes of the objects around a message's own bytes (64-bit CPython 3.11 to 3.13)."""

USER_PROPERTY_OVERHEAD = 160
"""Bytes of the objects around one user property: a pair, its list entry and two strings."""


def message_size(message: Publish | Will) -> int:
    """Return the bytes of a decoded message until it is published."""
    properties = message.properties
    size = MESSAGE_OVERHEAD + len(message.topic.encode()) + len(message.payload)
    size += len(properties.content_type or "") + len(properties.response_topic or "")
    size += len(properties.correlation_data or b"")
    for name, value in properties.user_properties:
        size += USER_PROPERTY_OVERHEAD + len(name) + len(value)
    return size
