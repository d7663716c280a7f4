"""What a gateway had promised at a moment of a recording, by the packets of all its clients."""

import struct
from collections import defaultdict
from dataclasses import dataclass, field

from crashtest.numbers import name_in
from gateway.bridges.serial.serial_frames import unstuff
from gateway.mqtt.codec.packet_codec import decode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
)
from gateway.mqtt.reason_codes import FAILURE
from tests.support.disk.disk_recorder import Operation
from tests.support.frames import next_frame

CONNECT = b"\x10"
"""How a client's connection begins."""

Number = tuple[str, int]
"""The sender of a message, and which of its messages it is."""


@dataclass(slots=True)
class Unfinished:
    """A QoS 2 message whose PUBCOMP has not come; `received` once its PUBREC has."""

    packet: Publish
    received: bool = False


@dataclass(slots=True)
class _Connection:
    """Both directions of a client's connection, and what it waits for."""

    heard: Framer = field(default_factory=lambda: Framer(1 << 20))
    said: Framer = field(default_factory=lambda: Framer(1 << 20))
    client_id: str = ""
    will: bool = False
    requests: dict[int, Publish] = field(default_factory=dict)
    filters: dict[int, list[str]] = field(default_factory=dict)
    delivered: dict[int, Number] = field(default_factory=dict)
    given: dict[int, list[Number]] = field(default_factory=dict)


@dataclass(slots=True)
class Promises:
    """What was promised so far.

    `kept` are messages with a PUBACK or PUBREC, `retained` the payloads of each topic in the
    order in which they were sent, and which of them was acknowledged last. `delivered` are
    packet identifiers at which an online client was sent a QoS 2 message, `released` those
    messages whose PUBREL it was sent. `worked` are those that the channel's consumer acknowledged,
    `brief` those that expire at once. `frames` are (boot, sequence) of serial frames.
    """

    sessions: set[str] = field(default_factory=set)
    filters: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    wills: set[str] = field(default_factory=set)
    kept: set[Number] = field(default_factory=set)
    sent: defaultdict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    retained: dict[str, int] = field(default_factory=dict)
    unfinished: dict[str, dict[int, Unfinished]] = field(default_factory=dict)
    delivered: dict[Number, int] = field(default_factory=dict)
    released: set[Number] = field(default_factory=set)
    worked: set[Number] = field(default_factory=set)
    brief: set[Number] = field(default_factory=set)
    frames: set[tuple[int, int]] = field(default_factory=set)
    _connections: defaultdict[str, _Connection] = field(
        default_factory=lambda: defaultdict(_Connection)
    )
    _line: bytearray = field(default_factory=bytearray)

    def note(self, call: Operation) -> None:
        """Learn from bytes that the gateway received or sent."""
        if call.file.startswith("/dev/pts/") and call.name == "write":
            self._note_serial(call.data)
        elif call.file.startswith("socket:") and (
            call.file in self._connections or (call.name == "recvfrom" and call.data[:1] == CONNECT)
        ):  # the loop wakes itself up by a socket, too, and the fleet is another's server
            connection = self._connections[call.file]
            if call.name == "recvfrom":
                for packet in packets_in(connection.heard, call.data):
                    self._heard(connection, packet)
            else:
                for packet in packets_in(connection.said, call.data):
                    self._said(connection, packet)

    def _heard(self, connection: _Connection, packet: Packet) -> None:
        if isinstance(packet, Connect):
            connection.client_id = packet.client_id
            connection.will = packet.will is not None
        elif isinstance(packet, Subscribe):
            filters = [each.topic_filter for each in packet.requests]
            connection.filters[packet.packet_id] = filters
        elif isinstance(packet, Publish):
            connection.requests[packet.packet_id or 0] = packet
            if packet.retain:
                self.sent[packet.topic].append(packet.payload)
            if packet.qos == 2:
                waiting = self.unfinished.setdefault(connection.client_id, {})
                waiting.setdefault(packet.packet_id or 0, Unfinished(packet))

        elif isinstance(packet, PubAck) and connection.client_id == "worker":
            self.worked.update(connection.given.pop(packet.packet_id, ()))

    def _said(self, connection: _Connection, packet: Packet) -> None:
        if isinstance(packet, ConnAck) and packet.reason_code < FAILURE:
            self.sessions.add(connection.client_id)
            if connection.will:
                self.wills.add(connection.client_id)
        elif isinstance(packet, SubAck):
            self.filters[connection.client_id].update(connection.filters.pop(packet.packet_id))
        elif isinstance(packet, PubAck | PubRec) and packet.reason_code < FAILURE:
            self._acknowledged(connection, packet)
        elif isinstance(packet, PubComp):
            del self.unfinished[connection.client_id][packet.packet_id]
        elif isinstance(packet, Publish) and packet.qos == 2 and packet.payload:
            connection.delivered[packet.packet_id or 0] = name_in(packet.payload)
            self.delivered[name_in(packet.payload)] = packet.packet_id or 0
        elif isinstance(packet, Publish) and packet.qos == 1:
            numbers = [name_in(packet.payload)] if packet.payload else []
            connection.given[packet.packet_id or 0] = numbers
        elif isinstance(packet, PubRel) and packet.packet_id in connection.delivered:
            self.released.add(connection.delivered[packet.packet_id])

    def _acknowledged(self, connection: _Connection, answer: PubAck | PubRec) -> None:
        packet = connection.requests.pop(answer.packet_id)
        if packet.retain:
            index = len(self.sent[packet.topic]) - 1  # one at a time is on its way
            self.retained[packet.topic] = index
        if packet.payload:
            brief = packet.properties.message_expiry_interval == 1
            (self.brief if brief else self.kept).add(name_in(packet.payload))
        if isinstance(answer, PubRec):
            self.unfinished[connection.client_id][answer.packet_id].received = True

    def _note_serial(self, data: bytes) -> None:
        self._line += data
        *frames, rest = bytes(self._line).split(b"\0")
        self._line = bytearray(rest)
        for frame in frames:
            if frame:
                _, kind, status, boot, sequence = struct.unpack("<BBBII", unstuff(frame)[:-4])
                if (kind, status) == (2, 0):
                    self.frames.add((boot, sequence))


def packets_in(framer: Framer, data: bytes) -> list[Packet]:
    """Return the packets that these bytes complete."""
    framer.feed(data)
    found = []
    while (frame := next_frame(framer)) is not None:
        found.append(decode(*frame, MQTT_5))
    return found
