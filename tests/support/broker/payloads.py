"""What somebody was sent."""

from collections.abc import Iterable

from gateway.mqtt.packets import Packet, Publish


def payloads(packets: Iterable[Packet]) -> list[bytes]:
    """Return the payloads of the PUBLISH packets."""
    return [packet.payload for packet in packets if isinstance(packet, Publish)]
