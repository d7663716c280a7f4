"""One network connection as MQTT sees it: bytes in, packets out; packets in, bytes out."""

from collections.abc import Callable

from gateway.mqtt.acknowledgement_run import (
    LONGEST,
    SIZE,
    AcknowledgementRun,
    acknowledgement_run,
    numbered,
    write_run,
)
from gateway.mqtt.alias_figures import InboundFigures
from gateway.mqtt.decode import check_first_packet, decode
from gateway.mqtt.encode import encode, without_reason
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.fields import write_string
from gateway.mqtt.framing import Framer
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.output import Output, Pledge
from gateway.mqtt.packet_run import PacketRun
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Connect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
)
from gateway.mqtt.plain_publishes import PlainPublishes
from gateway.mqtt.publish_form import behind_topic
from gateway.mqtt.publish_run import PublishRun, publish_run
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topic_aliases import InboundAliases

NO_LIMIT = 0xFFFFFFFF
"""A packet size that no packet reaches: the client named no Maximum Packet Size."""

CONNECT = 0x10

PUBLISH = 0x30
"""The first byte of a PUBLISH of QoS 0 that is not retained."""

NO_PROPERTY = b"\0"
"""The property length of a packet without properties (MQTT 5, section 2.2.2.1)."""

CONNECT_5 = b"\x00\x04MQTT\x05"
"""How the variable header of an MQTT 5 CONNECT begins (section 3.1.2)."""

MAXIMUM_RECEIVE_MAXIMUM = 65_535
"""QoS 1 and 2 messages without acknowledgement where no Receive Maximum says less."""

MAXIMUM_UNSENT = 1024 * 1024
"""Bytes that may wait for a slow reader before its messages stay in the delivery queue.

As many of answers to what it sent may wait beside them; then it should be read no more.
"""


class Connection:
    """The protocol state of one network connection; owns no socket and no clock.

    After each `receive` ask `next_packet` until it returns None, and `data_to_send` when the
    turn ends. Only `MqttError` leaves this class, and after one the connection is over.
    """

    __slots__ = (
        "_alias_figures",
        "_alias_maximum",
        "_aliases",
        "_framer",
        "_publishes",
        "answers",
        "maximum_packet_size",
        "on_output",
        "outbound_aliases",
        "output",
        "packets_received",
        "packets_sent",
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
    ) -> None:
        self._framer = Framer(maximum_packet_size)
        self._alias_maximum = topic_alias_maximum
        self._alias_figures = inbound_figures or InboundFigures()
        self._aliases: InboundAliases | None = None  # made with the first
        self.outbound_aliases: OutboundAliases | None = None  # a client asks for them in CONNECT
        self.output = Output()
        self.answers = 0  # bytes of the output that are no messages, at most
        self.on_output = on_output  # called once before each data_to_send that has news
        self.touched = False
        self.version = 0  # unknown until CONNECT
        self.maximum_packet_size = NO_LIMIT
        self.receive_maximum = receive_maximum
        self._publishes = 0  # of QoS 1 and 2 that were counted, since the beginning
        self.packets_received = 0
        self.packets_sent = 0

    def receive(self, data: bytes) -> None:
        """Take bytes as they came from the network."""
        self._framer.feed(data)

    def next_packet(self) -> Packet | None:
        """Return the next whole packet, None while more bytes are needed; raise MqttError."""
        frame = self._framer.next_frame()
        if frame is None:
            if not self.version and self._framer.first_byte is not None:
                check_first_packet(self._framer.first_byte)  # HTTP, say: don't wait for the rest
            return None
        buffer, first_byte, start, end = frame
        if not self.version and first_byte == CONNECT and buffer.startswith(CONNECT_5, start, end):
            self.version = MQTT_5  # so that a CONNECT that is refused is answered in MQTT 5
        packet = decode(buffer, first_byte, start, end, self.version)
        self.packets_received += 1
        if isinstance(packet, Publish):
            self._resolve_alias(packet)
        elif isinstance(packet, Connect) and not self.version:
            self.version = packet.protocol_version
        return packet

    @property
    def frame_size(self) -> int:
        """The bytes of the packet that `next_packet` returned last.

        0 if it cannot be sent on as it came, because its remaining length is written too long.
        """
        return self._framer.size if self._framer.shortest else 0

    def head(self, topic: str) -> bytes:
        """Return what stands before the payload in a PUBLISH of QoS 0 without properties."""
        return write_string(topic) + NO_PROPERTY if self.version == MQTT_5 else write_string(topic)

    def begins_with(self, head: bytes) -> int:
        """Return the bytes of the next packet if it is a PUBLISH of QoS 0 with this `head`, else 0.

        0 also where `next_packet` has to look at it. `begin_run` takes it in its place.
        """
        return self._framer.like(PUBLISH, head)

    def bytes_alone(self, data: bytes, head: bytes, first_byte: int = PUBLISH) -> int:
        """Return the bytes behind the `head` if `data` is one packet alone whose body begins so.

        `data` is what `receive` would take next; -1 if it has to. Who does without counts it.
        """
        return self._framer.alone(data, first_byte, head)

    def begins_numbered(self, first_byte: int, topic: bytes) -> int:
        """Return the same for a PUBLISH of QoS 1 or 2 that has this first byte and topic name.

        Its packet identifier and what stands behind that is for `find_run` to look at.
        """
        least = len(topic) + behind_topic(1, self.version == MQTT_5)
        return self._framer.like(first_byte, topic, least)

    def begin_run(self, size: int) -> None:
        """Take the packet of which `begins_with` said that it has so many bytes."""
        self._framer.skip(size)
        self.packets_received += 1

    def put_back(self) -> None:
        """Let the packet that `begin_run` took be the next one again."""
        self._framer.pass_over(0)
        self.packets_received -= 1

    def take_run(self, head: bytes, largest: int) -> PacketRun:
        """Take the packets behind the last one that differ from it in nothing but their payload.

        That has this `head`: equal bytes before the payload say that the rest is such a PUBLISH
        too. Those behind it have at most `largest` bytes. Returns all of them.
        """
        run = self._framer.run(head, len(head), largest, NO_LIMIT)
        self._pass_over(run.data, run.count)
        return run

    def plain_publishes(self, qos: int) -> PlainPublishes:
        """Return what takes the retained messages of this QoS that come next.

        `count_plain` is to follow.
        """
        return PlainPublishes(self._framer, self.version, qos)

    def count_plain(self, packets: PlainPublishes, to_acknowledge: int) -> None:
        """Count what was taken, and of that the PUBLISHes that are to be acknowledged."""
        self.packets_received += packets.count
        self._publishes += to_acknowledge

    def find_run(self, topic: bytes, largest: int, most: int) -> PublishRun | None:
        """Find the packets behind the last one that differ in packet identifier and payload alone.

        That is a PUBLISH of QoS 1 or 2, as `next_packet` returned or `begin_run` took it, and
        `topic` is its topic name with its length; None if it has properties, or a packet
        identifier of 0. At most `most` with it, from 1 on, and of at most `largest` bytes;
        `take_numbered_run` takes them.
        """
        properties = self.version == MQTT_5
        least = len(topic) + behind_topic(1, properties)
        run = self._framer.run(topic, least, largest, most)
        return publish_run(run, len(topic), properties)

    def take_numbered_run(self, run: PublishRun) -> None:
        """Take the packets that `find_run` has just found, as PUBLISHes to be acknowledged."""
        self._pass_over(run.packets.data, run.count)
        self._publishes += run.count

    def _pass_over(self, data: bytes, count: int) -> None:
        self._framer.pass_over(len(data))
        self.packets_received += count - 1

    @property
    def next_byte(self) -> int:
        """The first byte of the next packet, 0 where none has come, or only a part of one."""
        return self._framer.next_byte

    def find_acknowledgements(self, first_byte: int) -> AcknowledgementRun | None:
        """Return the acknowledgements with this first byte that come next, None if none do.

        None either of one that has a reason code, or properties. `take_acknowledgements` takes
        them.
        """
        return acknowledgement_run(self._framer.look_ahead(LONGEST), first_byte)

    def take_acknowledgements(self, count: int) -> None:
        """Take the first of what `find_acknowledgements` has just found."""
        self._framer.skip(count * SIZE)
        self.packets_received += count

    def acknowledgements_alone(self, data: bytes) -> AcknowledgementRun | None:
        """Return the acknowledgements that `data` is, None if it is anything else, or more.

        `data` is what `receive` would take next. Who does without counts them.
        """
        if len(data) % SIZE or not self._framer.idle():
            return None
        run = acknowledgement_run(data, data[0])
        return run if run is not None and run.count * SIZE == len(data) else None

    def _resolve_alias(self, packet: Publish) -> None:
        alias = packet.properties.topic_alias
        if alias is None and packet.topic:
            return
        if self._aliases is None:
            self._aliases = InboundAliases(self._alias_maximum, self._alias_figures)
        packet.topic = self._aliases.resolve(packet.topic, alias)

    @property
    def unacknowledged(self) -> int:
        """QoS 1 and 2 PUBLISH packets of the client whose last acknowledgement has not left."""
        return self._publishes - self.output.acknowledgements

    def count_publish(self) -> None:
        """Count a QoS 1 or 2 PUBLISH against our Receive Maximum [MQTT-3.3.4-8].

        Raises ProtocolError when that is exceeded: an acknowledgement that waits for a commit, or
        for a slow reader, has not been sent. Before MQTT 5 clients know of no such maximum.
        """
        self._publishes += 1
        if self.version == MQTT_5 and self.unacknowledged > self.receive_maximum:
            raise ProtocolError(
                f"more than {self.receive_maximum} QoS 1 and 2 messages without acknowledgement",
                ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
            )

    @property
    def room_for_publishes(self) -> int:
        """How many PUBLISHes `count_publish` would count without an error."""
        if self.version != MQTT_5:
            return MAXIMUM_RECEIVE_MAXIMUM
        return self.receive_maximum - self.unacknowledged

    def acknowledge(
        self, packet: PubAck | PubRec | PubComp, mark: int = 0, pledge: Pledge | None = None
    ) -> None:
        """Queue the packet that ends the exchange of a PUBLISH which `count_publish` counted."""
        if self.send(packet, mark, pledge):
            self.output.note_acknowledgements(1)

    def acknowledge_like(
        self, packet: bytes, packet_id: int, mark: int = 0, pledge: Pledge | None = None
    ) -> None:
        """Do what `acknowledge` does with a packet like this for one packet identifier.

        It is smaller than every CONNACK, and so within the client's Maximum Packet Size.
        """
        self.answers += len(packet)
        self.send_encoded(numbered(packet, packet_id), mark, pledge)
        self.output.note_acknowledgements(1)

    def acknowledge_run(
        self,
        packet: bytes,
        run: PublishRun | AcknowledgementRun,
        mark: int = 0,
        pledge: Pledge | None = None,
    ) -> None:
        """Do what `acknowledge` does with one packet like this for each identifier of the run."""
        self.answer_run(packet, run.high, run.low, mark, pledge)
        self.output.note_acknowledgements(len(run.high))

    def answer_run(
        self, packet: bytes, high: bytes, low: bytes, mark: int = 0, pledge: Pledge | None = None
    ) -> None:
        """Queue a packet like this one for each packet identifier, as `send` does.

        It is smaller than every CONNACK, and so within the client's Maximum Packet Size.
        """
        data = write_run(packet, high, low)
        self.answers += len(data)
        self.packets_sent += len(high) - 1
        self.send_encoded(data, mark, pledge)

    def send(self, packet: Packet, mark: int = 0, pledge: Pledge | None = None) -> bool:
        """Queue a packet; it leaves once every batch up to `mark` is on disk.

        With a `pledge` it also leaves when that is settled, which then touches this connection.
        Returns False for one above the client's Maximum Packet Size, which is not sent
        [MQTT-3.1.2-24].
        """
        data = encode(packet, self.version or MQTT_3_1_1)
        if len(data) > self.maximum_packet_size:
            data = encode(without_reason(packet), self.version)
            if len(data) > self.maximum_packet_size:
                return False
        self.answers += len(data)
        self.send_encoded(data, mark, pledge)
        return True

    def send_encoded(
        self, data: bytes | bytearray, mark: int = 0, pledge: Pledge | None = None
    ) -> None:
        """Queue the bytes of one packet that somebody else encoded."""
        self.packets_sent += 1
        self.output.append(data, mark, pledge)
        if pledge is not None:
            pledge.on_settled = self.touch
        self.touch()

    def send_run(self, data: bytes | bytearray, count: int) -> None:
        """Queue the bytes of `count` packets that somebody else encoded."""
        self.packets_sent += count
        self.output.append(data)
        if not self.touched:  # as `touch` does
            self.touched = True
            self.on_output()

    def touch(self) -> None:
        """Say that `data_to_send` may have news."""
        if not self.touched:
            self.touched = True
            self.on_output()

    def data_to_send(self, committed: int) -> bytes | bytearray | None:
        """Remove and return what may leave now that batch `committed` is on disk."""
        self.touched = False
        data = self.output.take(committed)
        if not self.output.size:
            self.answers = 0
        return data

    def close(self) -> None:
        """Give back what is kept for its topic aliases; nothing is received or sent any more."""
        if self._aliases is not None:
            self._aliases.close()
        if self.outbound_aliases is not None:
            self.outbound_aliases.close()

    @property
    def unread(self) -> bool:
        """True while the peer reads so few answers that no more of its packets should be taken.

        Messages alone don't make it so: a slow subscriber is heard, and its keep alive too.
        """
        return self.answers >= MAXIMUM_UNSENT

    @property
    def congested(self) -> bool:
        """True while the peer reads too slowly to be given more messages."""
        return self.output.size >= MAXIMUM_UNSENT
