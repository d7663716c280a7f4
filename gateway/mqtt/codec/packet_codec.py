"""Converts packets to bytes and back: the reader and writer of each packet (MQTT 5, chapter 3)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gateway.mqtt import packets
from gateway.mqtt.codec.acknowledgements import (
    read_pingreq,
    read_pingresp,
    read_puback,
    read_pubcomp,
    read_pubrec,
    read_pubrel,
    write_pingreq,
    write_pingresp,
    write_puback,
    write_pubcomp,
    write_pubrec,
    write_pubrel,
)
from gateway.mqtt.codec.connect import read_connack, read_connect, write_connack, write_connect
from gateway.mqtt.codec.publish import FLAGS, read_publish, write_publish, wrong_flags
from gateway.mqtt.codec.reason_code_codec import (
    read_auth,
    read_disconnect,
    write_auth,
    write_disconnect,
)
from gateway.mqtt.codec.subscribe import (
    read_suback,
    read_subscribe,
    read_unsuback,
    read_unsubscribe,
    write_suback,
    write_subscribe,
    write_unsuback,
    write_unsubscribe,
)
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_5, Packet, Subscribe, Unsubscribe

Reader = Callable[[bytes, int, int, int], Packet]

READERS: dict[int, Reader] = {
    0x10: read_connect,
    0x20: read_connack,
    # 0x30 to 0x3F: read_publish, the only one with meaningful flags
    0x40: read_puback,
    0x50: read_pubrec,
    0x62: read_pubrel,
    0x70: read_pubcomp,
    0x82: read_subscribe,
    0x90: read_suback,
    0xA2: read_unsubscribe,
    0xB0: read_unsuback,
    0xC0: read_pingreq,
    0xD0: read_pingresp,
    0xE0: read_disconnect,
    0xF0: read_auth,
}
"""The reader of each packet by its first byte; any other byte has wrong flags, or is reserved.

A reader gets the buffer, the start and end of the body, and the protocol version.
"""

_CONNECT = 0x10
_PUBLISH = 0x30
_AUTH = 0xF0
_TYPE = 0xF0


PROXY_HEADERS = (b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n")
"""The beginning of a proxy's header that names its client (PROXY protocol, 1 and 2)."""


def check_first_packet(first_byte: int, head: bytes = b"") -> None:
    """Raise ProtocolError unless this is the first byte of a CONNECT, with any flags.

    The error names the PROXY protocol if `head`, which begins with it, is such a header.
    """
    if first_byte & _TYPE != _CONNECT:  # [MQTT-3.1.0-1]
        if head.startswith(PROXY_HEADERS):
            text = "a PROXY protocol header before CONNECT"
            raise ProtocolError(f"{text}; proxy_protocol is not supported at this listener")
        raise ProtocolError(f"a packet of type {first_byte >> 4} before CONNECT")


def check_first_byte(first_byte: int, version: int) -> None:
    """Raise MqttError if no packet can begin with this byte.

    `version` is the connection's protocol version, 0 before CONNECT.
    """
    if not version:
        check_first_packet(first_byte)
    elif first_byte & _TYPE == _PUBLISH:
        if first_byte not in FLAGS:
            raise wrong_flags(first_byte)
        return
    if first_byte not in READERS or (first_byte == _AUTH and version < MQTT_5):
        raise reserved(first_byte)


def reserved(first_byte: int) -> MalformedPacket:
    """Return the error for a first byte that no packet has."""
    return MalformedPacket(
        f"first byte 0x{first_byte:02X}: a reserved packet type, or flags that it cannot have"
    )


def decode(buffer: bytes, first_byte: int, start: int, end: int, version: int) -> Packet:
    """Return the packet whose body is `buffer[start:end]`, as `Framer.next_frame` found it.

    `version` is the connection's protocol version: 3, 4 or 5, and 0 before CONNECT, which has its
    own. Raises only MalformedPacket or ProtocolError, whatever the bytes are.
    """
    packet = decode_head(buffer, first_byte, start, end, version)
    if isinstance(packet, Subscribe):
        packet.requests = list(packet.requests)
    elif isinstance(packet, Unsubscribe):
        packet.topic_filters = list(packet.topic_filters)
    return packet


def decode_head(buffer: bytes, first_byte: int, start: int, end: int, version: int) -> Packet:
    """Return the same packet, but read topic filters only when they are iterated.

    Errors in those of a SUBSCRIBE or an UNSUBSCRIBE are raised then.
    """
    if first_byte & _TYPE == _PUBLISH and version:
        return read_publish(buffer, first_byte, start, end, version)
    if not version:
        check_first_packet(first_byte, buffer[max(0, start - 2) : start + 10])
    reader = READERS.get(first_byte)
    if reader is None:  # [MQTT-2.1.3-1]
        raise reserved(first_byte)
    return reader(buffer, start, end, version)


__all__ = ["WRITERS", "encode", "without_reason"]

_EXPLAINED = (
    packets.ConnAck
    | packets.PubAck
    | packets.PubRec
    | packets.SubAck
    | packets.UnsubAck
    | packets.Disconnect
)
"""Packets with a Reason String, which may be omitted."""

WRITERS: dict[type[Packet], Callable[[Any, int], bytes]] = {
    packets.Connect: write_connect,
    packets.ConnAck: write_connack,
    packets.Publish: write_publish,
    packets.PubAck: write_puback,
    packets.PubRec: write_pubrec,
    packets.PubRel: write_pubrel,
    packets.PubComp: write_pubcomp,
    packets.Subscribe: write_subscribe,
    packets.SubAck: write_suback,
    packets.Unsubscribe: write_unsubscribe,
    packets.UnsubAck: write_unsuback,
    packets.PingReq: write_pingreq,
    packets.PingResp: write_pingresp,
    packets.Disconnect: write_disconnect,
    packets.Auth: write_auth,
}
"""The writer of each packet; it gets the packet and the protocol version."""


def encode(packet: Packet, version: int) -> bytes:
    """Return the whole packet in the format of protocol version 3, 4 or 5.

    What an older version does not have (properties, reason codes) is omitted. Raises ValueError or
    OverflowError for a value that does not fit its field, and for AUTH before MQTT 5.
    """
    return WRITERS[type(packet)](packet, version)


def without_reason(packet: Packet) -> Packet:
    """Return the packet without Reason String and user properties.

    [MQTT-3.2.2-19], [MQTT-3.9.2-1], [MQTT-3.14.2-3] and similar: they must be omitted if the packet
    would exceed the receiver's Maximum Packet Size.
    """
    if not isinstance(packet, _EXPLAINED):
        return packet
    properties = replace(packet.properties, reason_string=None, user_properties=())
    return replace(packet, properties=properties)
