"""One network connection as MQTT sees it: bytes in, packets out; packets in, bytes out."""

from collections.abc import Callable

from gateway.mqtt.acknowledgement_run import AcknowledgementRun, numbered, write_run
from gateway.mqtt.alias_figures import InboundFigures
from gateway.mqtt.decode import check_first_packet, decode
from gateway.mqtt.encode import encode, without_reason
from gateway.mqtt.errors import MqttError, ProtocolError
from gateway.mqtt.framing import Framer
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.output import Output, Pledge
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
from gateway.mqtt.publish_run import PublishRun
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.remaining_length import check_remaining_length
from gateway.mqtt.topic_aliases import InboundAliases

NO_LIMIT = 0xFFFFFFFF
"""A packet size that no packet reaches: the client named no Maximum Packet Size."""

CONNECT = 0x10

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
        "answers",
        "awaited",
        "framer",
        "maximum_packet_size",
        "on_output",
        "outbound_aliases",
        "output",
        "packets_received",
        "packets_sent",
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
    ) -> None:
        self.framer = Framer(maximum_packet_size)
        self._alias_maximum = topic_alias_maximum
        self._alias_figures = inbound_figures or InboundFigures()
        self._aliases: InboundAliases | None = None  # made with the first
        self.outbound_aliases: OutboundAliases | None = None  # a client asks for them in CONNECT
        self.output = Output()
        self.answers = 0  # bytes of the output that are no messages, at most
        self.awaited = False  # `data_to_send` has left something, and will be asked for it
        self.on_output = on_output  # called once before each data_to_send that has news
        self.touched = False
        self.version = 0  # unknown until CONNECT
        self.maximum_packet_size = NO_LIMIT
        self.receive_maximum = receive_maximum
        self.publishes = 0  # of QoS 1 and 2 that were counted, since the beginning
        self.packets_received = 0
        self.packets_sent = 0

    def receive(self, data: bytes) -> None:
        """Take bytes as they came from the network."""
        self.framer.feed(data)

    def next_packet(self) -> Packet | None:
        """Return the next whole packet, None while more bytes are needed; raise MqttError."""
        frame = self.framer.next_frame(self.version)
        if frame is None:
            if not self.version and self.framer.first_byte is not None:
                check_first_packet(self.framer.first_byte)  # HTTP, say: don't wait for the rest
            return None
        buffer, first_byte, start, end = frame
        if not self.version and first_byte == CONNECT and buffer.startswith(CONNECT_5, start, end):
            self.version = MQTT_5  # so that a CONNECT that is refused is answered in MQTT 5
        try:
            packet = decode(buffer, first_byte, start, end, self.version)
        except MqttError:  # the same error, whether or not the framer had to wait for the body
            check_remaining_length(first_byte, end - start, self.version)
            raise
        self.packets_received += 1
        if isinstance(packet, Publish):
            self._resolve_alias(packet)
        elif isinstance(packet, Connect) and not self.version:
            self.version = packet.protocol_version
        return packet

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
        return self.publishes - self.output.acknowledgements

    def count_publish(self) -> None:
        """Count a QoS 1 or 2 PUBLISH against our Receive Maximum [MQTT-3.3.4-8].

        Raises ProtocolError when that is exceeded: an acknowledgement that waits for a commit, or
        for a slow reader, has not been sent. Before MQTT 5 clients know of no such maximum.
        """
        self.publishes += 1
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

    def promise_like(self, packet: bytes, mark: int, pledge: Pledge) -> None:
        """Do what `acknowledge_like` does with a whole packet that cannot leave yet, and count it.

        Nobody is told of it before `await_disk` or `leave_at_once`.
        """
        self.publishes += 1
        self.packets_sent += 1
        self.answers += len(packet)
        self.output.append(packet, mark, pledge)
        self.output.note_acknowledgements(1)

    def await_disk(self, pledge: Pledge) -> None:
        """Have what was promised leave when its batch is on disk, or the pledge is settled."""
        pledge.on_settled = self.touch
        self.touch()

    def leave_at_once(self) -> int:
        """Send what waits for nothing any more before the turn ends; return how many bytes.

        It is left to `data_to_send` if that is to be asked anyway.
        """
        output = self.output
        if self.touched or self.awaited or output.transport is None:
            self.touch()
            return 0
        data = output.take(0)
        if data is None:
            return 0
        if not output.size:
            self.answers = 0
        output.transport.write(data)
        return len(data)

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
        self.awaited = self.output.size > 0
        if not self.awaited:
            self.answers = 0
        return data

    def close(self) -> None:
        """Give back what is kept for its topic aliases; nothing is received or sent any more."""
        self.output.transport = None
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
