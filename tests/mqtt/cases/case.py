"""What a packet case is, and what a malformed one."""

from typing import NamedTuple

from gateway.mqtt.errors import MalformedPacket, MqttError, ProtocolError
from gateway.mqtt.packets import Packet
from gateway.mqtt.reason_codes import ReasonCode

ALL = (3, 4, 5)
BEFORE_5 = (3, 4)
ONLY_5 = (5,)
UNKNOWN = (0,)  # a connection that has sent nothing yet

TOPIC_NAME = ReasonCode.TOPIC_NAME_INVALID
TOPIC_ALIAS = ReasonCode.TOPIC_ALIAS_INVALID
VERSION = ReasonCode.UNSUPPORTED_PROTOCOL_VERSION


class PacketCase(NamedTuple):
    """A packet in protocol version `version`; `shortest` if the encoder writes just this."""

    name: str
    version: int
    raw: bytes
    packet: Packet
    shortest: bool = True


class MalformedCase(NamedTuple):
    """The first byte and the body of a packet, in each of `versions`, and what is raised."""

    name: str
    versions: tuple[int, ...]
    first_byte: int
    body: bytes
    error: type[MqttError]
    reason_code: ReasonCode


def malformed(
    name: str,
    versions: tuple[int, ...],
    first_byte: int,
    body: bytes,
    reason_code: ReasonCode = ReasonCode.MALFORMED_PACKET,
) -> MalformedCase:
    return MalformedCase(name, versions, first_byte, body, MalformedPacket, reason_code)


def protocol_error(
    name: str,
    versions: tuple[int, ...],
    first_byte: int,
    body: bytes,
    reason_code: ReasonCode = ReasonCode.PROTOCOL_ERROR,
) -> MalformedCase:
    return MalformedCase(name, versions, first_byte, body, ProtocolError, reason_code)
