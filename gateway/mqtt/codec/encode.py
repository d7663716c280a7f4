"""Packets to bytes: which function writes which packet (MQTT 5, chapter 3)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gateway.mqtt import packets
from gateway.mqtt.codec.acknowledgements import (
    write_pingreq,
    write_pingresp,
    write_puback,
    write_pubcomp,
    write_pubrec,
    write_pubrel,
)
from gateway.mqtt.codec.connack import write_connack
from gateway.mqtt.codec.connect import write_connect
from gateway.mqtt.codec.publish import write_publish
from gateway.mqtt.codec.reason_code_codec import write_auth, write_disconnect
from gateway.mqtt.codec.subscribe import (
    write_suback,
    write_subscribe,
    write_unsuback,
    write_unsubscribe,
)
from gateway.mqtt.packets import Packet

__all__ = ["WRITERS", "encode", "without_reason"]

_EXPLAINED = (
    packets.ConnAck
    | packets.PubAck
    | packets.PubRec
    | packets.SubAck
    | packets.UnsubAck
    | packets.Disconnect
)
"""What may carry a Reason String that can be left out."""

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
"""The writer of each packet; it takes the packet and the protocol version."""


def encode(packet: Packet, version: int) -> bytes:
    """Return the whole packet as protocol version 3, 4 or 5 has it.

    What an older version cannot say (properties, reason codes) is left out. Raises ValueError or
    OverflowError for a value that its field cannot hold, and for AUTH before MQTT 5.
    """
    return WRITERS[type(packet)](packet, version)


def without_reason(packet: Packet) -> Packet:
    """Return the packet without Reason String and user properties, which may be left out.

    [MQTT-3.2.2-19], [MQTT-3.9.2-1], [MQTT-3.14.2-3] and their likes: they must be, where they
    would take a packet beyond the receiver's Maximum Packet Size.
    """
    if not isinstance(packet, _EXPLAINED):
        return packet
    properties = replace(packet.properties, reason_string=None, user_properties=())
    return replace(packet, properties=properties)
