"""What went between a gateway and its fleet up to a moment of a recording, by their packets."""

from dataclasses import dataclass, field

from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import PubAck, Publish
from tests.support.disk.disk_recorder import Operation
from tests.support.disk.promises import CONNECT, packets_in


@dataclass(slots=True)
class _Way:
    """Both directions of the gateway's connection to the fleet."""

    sent: Framer = field(default_factory=lambda: Framer(1 << 20))
    heard: Framer = field(default_factory=lambda: Framer(1 << 20))
    waiting: dict[int, Publish] = field(default_factory=dict)


@dataclass(slots=True)
class FleetPackets:
    """What the gateway has `sent` to the fleet, and what of it the fleet has `acknowledged`."""

    sent: list[Publish] = field(default_factory=list)
    acknowledged: list[Publish] = field(default_factory=list)
    _ways: dict[str, _Way] = field(default_factory=dict)

    def note(self, call: Operation) -> None:
        """Learn from bytes that the gateway received or sent; others than the fleet's are left."""
        way = self._ways.get(call.file)
        if call.name.startswith("send"):
            if way is None and call.file.startswith("socket:") and call.data[:1] == CONNECT:
                way = self._ways[call.file] = _Way()
            if way is not None:
                self._said(way, call.data)
        elif way is not None and call.name == "recvfrom":
            for packet in packets_in(way.heard, call.data):
                if isinstance(packet, PubAck):
                    self.acknowledged.append(way.waiting.pop(packet.packet_id))

    def _said(self, way: _Way, data: bytes) -> None:
        for packet in packets_in(way.sent, data):
            if isinstance(packet, Publish):
                self.sent.append(packet)
                way.waiting[packet.packet_id or 0] = packet
