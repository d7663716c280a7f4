"""The MQTT state of one network connection: received bytes to packets, packets to bytes."""

from collections.abc import Callable, Sequence
from math import inf

from gateway.mqtt.acknowledgement_batch import (
    LARGEST,
    SIZE,
    acknowledged_by,
    acknowledgements,
)
from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import InboundAliases, InboundFigures
from gateway.mqtt.codec.packet_codec import decode_head, encode, without_reason
from gateway.mqtt.codec.publish import (
    DUP,
    NO_PUBLISH_PROPERTIES,
    PropertyCache,
    property_block,
    read_publish_head,
)
from gateway.mqtt.codec.remaining_length import check_remaining_length
from gateway.mqtt.errors import MqttError, ProtocolError
from gateway.mqtt.framing import Framer, SameRoute
from gateway.mqtt.output import Barrier, Output
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, Packet, Publish
from gateway.mqtt.publication import NO_BYTES, PacketBatch, Publication
from gateway.mqtt.publish_encoder import write_packets
from gateway.mqtt.reason_codes import ReasonCode

NO_LIMIT = 0xFFFFFFFF
"""A packet size above any packet: the client set no Maximum Packet Size."""

CONNECT = 0x10

CONNECT_5 = b"\x00\x04MQTT\x05"
"""How the variable header of an MQTT 5 CONNECT begins (section 3.1.2)."""

_LARGEST = LARGEST
_SIZE = SIZE
_DUP = DUP
_LONGEST_LENGTH = 4  # bytes of a remaining length (section 1.5.5)
_NO_TOPIC = b"\0\0"

MAXIMUM_RECEIVE_MAXIMUM = 65_535
"""Unacknowledged QoS 1 and 2 messages if no Receive Maximum is lower."""

MAXIMUM_UNSENT = 1024 * 1024
"""Bytes that may wait for a slow reader before its messages stay in the delivery queue.

As many bytes of answers may wait beside them; then its packets should not be read.
"""


class Connection:
    """The protocol state of one network connection; owns no socket and no clock.

    Pass received bytes to `framer.feed`, then call `framer.next_frame` until it returns 0, or
    `next_packet` until None, and `data_to_send` when the turn ends. `packet`, `publication` or
    `acknowledged` decodes the frame, and must be called before the next one. Only `MqttError` is
    raised, and ends the connection.
    """

    __slots__ = (
        "_alias_figures",
        "_alias_maximum",
        "_aliases",
        "answers",
        "barrier",
        "bridge",
        "framer",
        "maximum_packet_size",
        "maximum_unsent",
        "next_has_same_topic",
        "next_is_publish",
        "on_output",
        "outbound_aliases",
        "output",
        "packets_received",
        "packets_sent",
        "property_cache",
        "publishes",
        "receive_maximum",
        "touched",
        "version",
    )

    def __init__(
        self,
        maximum_packet_size: int,
        topic_alias_maximum: int = 0,
        on_output: Callable[[], None] = lambda: None,
        inbound_figures: InboundFigures | None = None,
        receive_maximum: int = MAXIMUM_RECEIVE_MAXIMUM,
        property_cache: PropertyCache | None = None,
    ) -> None:
        self.framer = Framer(maximum_packet_size)
        self.property_cache = property_cache or PropertyCache()
        self.next_is_publish = False  # whether `extend` may find anything
        self.next_has_same_topic = False  # and the next seems to have the same topic
        self._alias_maximum = topic_alias_maximum
        self._alias_figures = inbound_figures or InboundFigures()
        self._aliases: InboundAliases | None = None  # made with the first
        self.outbound_aliases: OutboundAliases | None = None  # a client allows them in CONNECT
        self.output = Output()
        self.barrier: Barrier | None = None  # of the answers that wait for the next write
        self.answers = 0  # bytes of output that are not messages, at most
        self.on_output = on_output  # called once before each data_to_send that returns something
        self.touched = False
        self.version = 0  # unknown until CONNECT
        self.bridge = False
        self.maximum_unsent = MAXIMUM_UNSENT
        self.maximum_packet_size = NO_LIMIT
        self.receive_maximum = receive_maximum
        self.publishes = 0  # of QoS 1 and 2 that were counted since the beginning
        self.packets_received = 0
        self.packets_sent = 0

    def next_packet(self) -> Packet | None:
        """Return the next whole packet, None while more bytes are needed; raise MqttError."""
        return self.packet() if self.framer.next_frame(self.version) else None

    def packet(self) -> Packet:
        """Return the last frame as a packet; raise MqttError, or later: see `decode_head`."""
        framer = self.framer
        buffer, first_byte, start, end = framer.buffer, framer.first_byte, framer.body, framer.end
        if not self.version and first_byte == CONNECT and buffer.startswith(CONNECT_5, start, end):
            self.version = MQTT_5  # so that a refused CONNECT is answered in MQTT 5
        try:
            packet = decode_head(buffer, first_byte, start, end, self.version)
        except MqttError:  # the same error whether or not the framer had to wait for the body
            check_remaining_length(first_byte, end - start, self.version)
            raise
        self.packets_received += 1
        if isinstance(packet, Connect) and not self.version:
            self.version, self.bridge = packet.protocol_version, packet.bridge
        elif isinstance(packet, Publish):
            name = self._resolve_alias(packet.topic.encode(), packet.properties.topic_alias)
            packet.topic = name.decode()
        return packet

    def publication(self) -> Publication:
        """Return the last frame as a PUBLISH, whose topic is not checked yet.

        Raises MqttError for anything else that is wrong with it. `extend` adds following ones.
        """
        framer = self.framer
        buffer, first_byte, body, end = framer.buffer, framer.first_byte, framer.body, framer.end
        mqtt5 = self.version == MQTT_5
        name_end, fields, payload = read_publish_head(buffer, first_byte, body, end, mqtt5)
        properties = NO_PUBLISH_PROPERTIES
        if fields < payload:
            properties = self.property_cache.read(buffer[fields:payload])
        view = buffer
        name = view[body:name_end]
        packet = view[framer.start : end]
        identifier = (name_end if first_byte & 6 else payload) - body
        head = len(packet) - (end - body)
        packets = PacketBatch.__new__(PacketBatch)
        packets.fill(packet, len(packet), head, identifier, payload - body)
        self.packets_received += 1
        alias = properties.alias
        if name == _NO_TOPIC or alias is not None:
            name = self._resolve_name(name, alias)
        publication = Publication.__new__(Publication)
        publication.fill(packets, first_byte & ~_DUP, mqtt5, name, properties)
        self.next_is_publish = self.next_has_same_topic = False
        if end < len(buffer) and buffer[end] == first_byte:
            self.next_is_publish = True
            # the next packet has its topic at the same offset if both lengths are encoded alike
            topic = end + head
            self.next_has_same_topic = buffer[topic : topic + len(name)] == name
        # MQTT 5 requires the shortest remaining length from every sender (section 1.5.5)
        longer = head > 2 and not (end - body) >> 7 * (head - 2)
        if alias is not None or first_byte & _DUP or longer:
            publication.packet_id = packets.identifiers()[0] if publication.qos else 0
            self._make_canonical(publication)
        return publication

    def _make_canonical(self, publication: Publication) -> None:
        """Encode a packet again that cannot be forwarded as received; no other packet joins it."""
        self.next_has_same_topic = self.next_is_publish = False
        properties, block = publication.properties, b""
        if publication.mqtt5:
            block = property_block(properties, properties.expiry, (), 0)
        publication.packets = write_packets(
            publication.packets, publication.first_byte, publication.topic_name, block
        )

    def next_topic_name(self) -> bytes:
        """Return the topic name of the next PUBLISH, b"" while it is incomplete."""
        buffer, start = self.framer.buffer, self.framer.end + 2
        last = start + _LONGEST_LENGTH - 1
        if len(buffer) < last + 2:
            return b""
        while buffer[start - 1] > 0x7F and start < last:
            start += 1
        end = start + 2 + (buffer[start] << 8 | buffer[start + 1])
        return buffer[start:end] if end <= len(buffer) else b""

    def extend(
        self,
        publication: Publication,
        most: int,
        most_bytes: int,
        same_route: SameRoute | None = None,
    ) -> None:
        """Add following packets to the last publication, as long as they fit.

        They differ from it only in packet identifier and payload, and in a topic name of the
        `same_route`. `most` and `most_bytes` include the first. None is added unless
        `next_is_publish`.
        """
        if not self.next_is_publish:
            return
        packets = publication.packets
        properties = b""
        if publication.mqtt5:
            place = len(publication.topic_name) + (2 if publication.qos else 0)
            properties = packets.data[packets.body + place : packets.body + packets.payload]
        publication.mixed = self.framer.extend(packets, most, most_bytes, properties, same_route)
        if packets.count > 1:
            self.packets_received += packets.count - 1
            if publication.qos and 0 in packets.identifiers():
                # an error [MQTT-2.2.1-3] that is raised when that packet is handled
                self.shorten(publication, list(packets.identifiers()).index(0))

    def shorten(self, publication: Publication, count: int) -> None:
        """Return all but the first `count` messages of the last publication to the framer."""
        packets = publication.packets
        if count < packets.count:
            self.packets_received -= packets.count - count
            self.framer.go_on(packets.start(count))
            packets.shorten(count)

    def acknowledged(self) -> Sequence[int]:
        """Return the packet identifiers of the last frame and of adjacent acknowledgements.

        They have the same first byte and only their identifier. Empty if the last frame has more:
        then call `packet`.
        """
        framer = self.framer
        buffer, body, end = framer.buffer, framer.body, framer.end
        if end - body != _SIZE - 2:
            return ()
        if end == len(buffer) and (buffer[body] or buffer[body + 1]):  # no other follows, as mostly
            self.packets_received += 1
            return (buffer[body] << 8 | buffer[body + 1],)
        found = acknowledged_by(framer.last_bytes(_LARGEST), framer.first_byte)
        if 0 in found:
            found = found[: list(found).index(0)]
        if found:
            framer.go_on(len(found) * _SIZE)
            self.packets_received += len(found)
        return found

    def _resolve_name(self, name: bytes, alias: int | None) -> bytes:
        """Return the topic name, after its length, of a PUBLISH that may have an alias."""
        topic = self._resolve_alias(name[2:], alias)
        return len(topic).to_bytes(2, "big") + topic

    def _resolve_alias(self, topic: bytes, alias: int | None) -> bytes:
        if alias is None and topic:
            return topic
        if self._aliases is None:
            self._aliases = InboundAliases(self._alias_maximum, self._alias_figures)
        return self._aliases.resolve(topic, alias)

    @property
    def unacknowledged(self) -> int:
        """The client's QoS 1 and 2 PUBLISH packets whose last acknowledgement has not been sent."""
        return self.publishes - self.output.acknowledgements

    def check_receive_maximum(self) -> None:
        """Raise ProtocolError if `publishes` exceeds our Receive Maximum [MQTT-3.3.4-8].

        An acknowledgement that waits for a commit, or for a slow reader, has not been sent. Before
        MQTT 5 clients know no such maximum.
        """
        if self.version == MQTT_5 and self.unacknowledged > self.receive_maximum:
            raise ProtocolError(
                f"more than {self.receive_maximum} QoS 1 and 2 messages without acknowledgement",
                ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
            )

    @property
    def publish_capacity(self) -> int:
        """How many more PUBLISHes the Receive Maximum allows."""
        if self.version != MQTT_5:
            return MAXIMUM_RECEIVE_MAXIMUM
        return self.receive_maximum - self.unacknowledged

    def answer(
        self,
        packet: bytes,
        identifiers: Sequence[int],
        commit: int = 0,
        barrier: Barrier | None = None,
        *,
        last: bool = False,
    ) -> None:
        """Queue a copy of this acknowledgement for each packet identifier, as `send` does.

        The `last` of an exchange reduces `publishes`. It is smaller than any CONNACK, and so within
        the client's Maximum Packet Size.
        """
        count = len(identifiers)
        data: bytes | bytearray
        if count == 1 and len(packet) == _SIZE:  # as mostly; a fifth of the time
            data = copy = NO_BYTES + packet
            packet_id = identifiers[0]
            copy[2] = packet_id >> 8
            copy[3] = packet_id & 0xFF
        else:
            data = acknowledgements(packet, identifiers)
        self.answers += len(data)
        self.send_encoded(data, count, commit, barrier, count if last else 0)

    def set_output_aside(self) -> Output:
        """Return the output and begin a new one, for packets that must follow an answer."""
        aside, self.output = self.output, Output()
        return aside

    def resume_output(self, aside: Output) -> Output:
        """Continue with the output that was set aside; return what was queued meanwhile."""
        following, self.output = self.output, aside
        return following

    def send(self, packet: Packet, commit: int = 0) -> bool:
        """Queue a packet; it is sent once every batch up to `commit` is on disk.

        Returns False for one above the client's Maximum Packet Size, which is not sent
        [MQTT-3.1.2-24].
        """
        data = encode(packet, self.version or MQTT_3_1_1)
        if len(data) > self.maximum_packet_size:
            data = encode(without_reason(packet), self.version)
            if len(data) > self.maximum_packet_size:
                return False
        self.answers += len(data)
        self.send_encoded(data, 1, commit)
        return True

    def send_encoded(
        self,
        data: bytes | bytearray,
        count: int,
        commit: int = 0,
        barrier: Barrier | None = None,
        acknowledgements: int = 0,
    ) -> None:
        """Queue the bytes of `count` packets.

        A settled `barrier` lets them be sent before `commit`.

        That touches this connection. `acknowledgements` of the packets are the last of exchanges.
        """
        self.packets_sent += count
        self.output.append(data, commit, barrier, acknowledgements)
        if barrier is not None:
            barrier.on_settled = self.touch
        if not self.touched:  # as `touch` does
            self.touched = True
            self.on_output()

    def touch(self) -> None:
        """Report that `data_to_send` may return something."""
        if not self.touched:
            self.touched = True
            self.on_output()

    def data_to_send(self, committed: int, now: float = inf) -> bytes | bytearray | None:
        """Remove and return what may be sent at second `now`, with batch `committed` on disk."""
        self.touched = False
        barrier = self.barrier
        if barrier is not None and (barrier.outstanding or barrier.on_settled is not None):
            self.barrier = None  # an unused one is for the next answers
        data = self.output.pop(committed, now)
        if not self.output.size:
            self.answers = 0
        return data

    @property
    def held(self) -> int:
        """Bytes held for the peer: incomplete packets, aliases, output."""
        aliases = 0 if self._aliases is None else self._aliases.bytes
        # objects that grow in steps leave holes in the heap: up to as much again, measured
        return self.framer.held + aliases * 9 // 8 + self.output.size * 2

    def discard(self) -> None:
        """Drop received bytes and unsent output."""
        self.framer = Framer(0)
        self.output = Output()

    def close(self) -> None:
        """Free the topic aliases; nothing is received or sent any more."""
        if self._aliases is not None:
            self._aliases.close()
        if self.outbound_aliases is not None:
            self.outbound_aliases.close()

    @property
    def unread(self) -> bool:
        """True while so many answers are unread that the peer's packets should not be read.

        Unread messages do not count by themselves: a slow subscriber's packets are handled, its
        keep alive too.
        """
        return self.answers >= self.maximum_unsent

    @property
    def congested(self) -> bool:
        """True while the peer reads too slowly to get more messages."""
        return self.output.size >= self.maximum_unsent
