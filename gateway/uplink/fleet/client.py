"""One network connection to the fleet's broker: an MQTT client for QoS 1 messages."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway.mqtt.codec.fields import (
    read_binary,
    read_packet_identifier,
    read_variable_byte_integer,
)
from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.codec.publish import QOS_SHIFT
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    PingReq,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.settings.uplink import UplinkSettings
from gateway.uplink.begin_connection import BeginConnection, begin_connection
from gateway.uplink.errors import (
    End,
    LinkError,
    TakenOverError,
    end_of,
    in_words,
    problem_of,
)
from gateway.uplink.fleet.connecting import (
    PORTS,
    TLS,
    ServerLimits,
    connect_packet,
    limits_of,
    proxy_of,
    refusal_of,
    tls_context,
)
from gateway.uplink.fleet.message import FleetMessage
from gateway.uplink.fleet.stream import (
    FleetStream,
    is_reachable,
    make_stream,
    open_socket,
)

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)


LAST_PACKET_IDENTIFIER = 65_535

HEAD_BYTES = 1 + 4 + 2 + 65_535 + 2
"""Bytes of an `OversizedPublish` that are stored: up to its packet identifier, after the longest
topic name."""

_QOS = 3

# Compiled, these are C names.
_MQTT_5 = MQTT_5
_PUBACK = 0x40

_SHORT_PUBACK = 2
"""Bytes of a PUBACK's body without a reason code: success (section 3.4.2.1)."""

_SUCCESS = ReasonCode.SUCCESS

_CONNACK = 0x20

_OLD_CONNACK = b"\x00\x01"
"""The body of a CONNACK of MQTT 3.1.1 that refuses the protocol version."""

OnMessage = Callable[[Publish, Callable[[], None]], None]
"""Called with a message and a function that acknowledges it, at once or later."""

OnSkipped = Callable[[str, str], None]
"""Called with the topic of a message, and the limit that it exceeds."""


def _receipt(qos: int, packet_id: int, code: ReasonCode = _SUCCESS) -> PubAck | PubRec:
    """Return the answer to a PUBLISH of QoS 1 or 2 [MQTT-4.3.2-4, MQTT-4.3.3-8]."""
    return PubAck(packet_id, code) if qos == 1 else PubRec(packet_id, code)


def is_publish(first_byte: int) -> bool:
    """Return whether a packet with this first byte is a PUBLISH."""
    return first_byte >> 4 == PacketType.PUBLISH


class OversizedPublish:
    """A PUBLISH that is too large for this side: its head is read, and the rest skipped.

    At least its remaining length was received, in `start`. Only its head is ever in memory.
    """

    def __init__(self, start: bytes) -> None:
        length, self._body = read_variable_byte_integer(start, 1, len(start), "remaining length")
        self.size = self._body + length
        """Bytes of the packet."""
        self._head = b""
        self._remaining = self.size

    @property
    def over(self) -> bool:
        """Whether its last byte was received."""
        return not self._remaining

    def pass_by(self, data: bytes) -> bytes:
        """Skip its next bytes, from the first one on; return those after it."""
        own = data[: self._remaining]
        self._remaining -= len(own)
        self._head += own[: HEAD_BYTES - len(self._head)]
        return data[len(own) :]

    @property
    def qos(self) -> int:
        """Its QoS, once its first byte was received."""
        return self._head[0] >> QOS_SHIFT & _QOS

    def head(self) -> tuple[str, int]:
        """Return its topic and its packet identifier, 0 at QoS 0.

        Raises MalformedPacket or ProtocolError if it has none.
        """
        head, end = self._head, len(self._head)
        topic, position = read_binary(head, self._body, end, "topic name")
        packet_id = 0
        if self.qos:
            packet_id, _ = read_packet_identifier(head, position, end)
        return topic.decode(errors="replace"), packet_id


class PacketIdentifiers:
    """Assigns unused identifiers, upwards from `last`."""

    __slots__ = ("in_use", "last")

    def __init__(self) -> None:
        self.last = 0
        self.in_use: set[int] = set()

    def next(self) -> int:
        """Return an unused identifier [MQTT-2.2.1-3] and mark it as used."""
        mid = self.last % LAST_PACKET_IDENTIFIER + 1
        while mid in self.in_use:
            mid = mid % LAST_PACKET_IDENTIFIER + 1
        self.last = mid
        self.in_use.add(mid)
        return mid

    def hold(self, mid: int) -> None:
        """Mark an identifier of an earlier connection as used."""
        self.in_use.add(mid)

    def release(self, mid: int) -> None:
        """Free an identifier after its answer."""
        self.in_use.discard(mid)


class KeepAlive:
    """Decides when a PINGREQ is due; `seconds` 0 turns it off. All times are monotonic.

    Set `sent` after a packet, and `received` after bytes, all of which count as an answer. The next
    `note` has their time: it is called each second, and no packet needs to read the clock.
    """

    __slots__ = ("_ping_sent_at", "_received_at", "_sent_at", "received", "seconds", "sent")

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self.sent = self.received = False
        self._sent_at = self._received_at = now
        self._ping_sent_at: float | None = None

    def note(self, now: float) -> None:
        """Note what was sent and received since the last call."""
        if self.sent:
            self.sent, self._sent_at = False, now
        if self.received:
            self.received, self._received_at, self._ping_sent_at = False, now, None

    def due(self, now: float) -> bool:
        """Return whether a PINGREQ is due now; it then counts as sent."""
        if not self.seconds or self._ping_sent_at is not None:
            return False
        if now - min(self._sent_at, self._received_at) < self.seconds:
            return False
        self._ping_sent_at = now
        return True

    def over(self, now: float) -> bool:
        """Return whether a PINGREQ has been unanswered for too long."""
        return self._ping_sent_at is not None and now - self._ping_sent_at >= self.seconds


class FleetClient:
    """A connection, used once; messages not acknowledged at its end are sent on the next one.

    The session at the server outlives it for `settings.session_expiry`: the fleet's requests wait
    there. After the CONNACK, `session_present` says whether it exists; then unacknowledged messages
    are repeated by `publish_again` before anything else.

    Published messages are sent by `flush`. Call `service` whenever `wake` was called, and
    periodically. `on_acknowledged` gets the packet identifier and the reason code of each PUBACK,
    as it arrives; after those of one read `on_read` is called, and `wake` is not. A message that is
    too large (`settings.packet_bytes`), or has more properties than are read, is acknowledged, in
    MQTT 5 with 0x97, and skipped: `on_skipped` is called. Ending the connection would not help,
    since the message would be sent again on the next one. Without `mqtt_5` the connection uses MQTT
    3.1.1. `packet_identifiers.last` is for the next connection of the session, which continues
    after it.
    """

    __slots__ = (
        "_acknowledged",
        "_begin_connection",
        "_bridge",
        "_closed",
        "_error",
        "_framer",
        "_keep_alive",
        "_loop",
        "_on_message",
        "_opening",
        "_oversized",
        "_settings",
        "_stream",
        "_unnumbered",
        "_unsubscribed",
        "_waiting",
        "_wake",
        "connack",
        "limits",
        "on_read",
        "on_skipped",
        "on_suback",
        "packet_identifiers",
        "session_present",
        "version",
    )

    def __init__(
        self,
        settings: UplinkSettings,
        wake: Callable[[], None],
        on_acknowledged: Callable[[int, int], None],
        *,
        mqtt_5: bool = True,
        bridge: bool = False,
        begin: BeginConnection = begin_connection,
    ) -> None:
        self.version = MQTT_5 if mqtt_5 else MQTT_3_1_1
        self._bridge = bridge
        self.session_present = False
        self.connack: ConnAck | None = None
        self.limits: ServerLimits | None = None
        self.packet_identifiers = PacketIdentifiers()
        self.on_read: Callable[[], None] = wake
        self._settings = settings
        self._wake = wake
        self._acknowledged = on_acknowledged
        self._begin_connection = begin
        self._on_message: OnMessage | None = None
        self._loop = asyncio.get_running_loop()
        self.on_suback: Callable[[SubAck], None] = _log_refused
        self.on_skipped: OnSkipped = lambda _topic, _why: None
        self._framer = Framer(settings.packet_bytes)
        self._oversized: OversizedPublish | None = None
        self._stream: FleetStream | None = None
        self._keep_alive = KeepAlive(settings.keep_alive, self._loop.time())
        self._opening: asyncio.Task[None] | None = None
        self._error: LinkError | None = None
        self._closed = False
        self._unnumbered = 0
        self._waiting: list[bytes] = []  # packets for the next `flush`
        self._unsubscribed: dict[int, Callable[[], None]] = {}

    def connect(self, will: Will | None, *, clean_start: bool = True) -> None:
        """Begin to connect; `limits` is set when it is done."""
        target = urlsplit(self._settings.url or "")
        host, port = target.hostname or "", target.port or PORTS[target.scheme]
        try:
            packet = connect_packet(
                self._settings, will, self.version, clean_start=clean_start, bridge=self._bridge
            )
            tls = tls_context(self._settings) if target.scheme in TLS else None
            proxy = proxy_of(self._settings)
        except OSError as error:  # ssl.SSLError is one
            raise LinkError(str(error)) from error

        def opened(sock: socket.socket | None, error: str) -> None:
            if sock is None:
                self._fail(f"{host}:{port}: {error}")
            elif self._closed:
                sock.close()
            else:
                url, longest = self._settings.url or "", self._settings.packet_bytes
                # Before the task: one that is cancelled before it starts closes nothing.
                stream = self._stream = make_stream(sock, self._wake, self._arrived, url, longest)
                begin = self._begin(sock, stream, f"{host}:{port}", tls, packet)
                self._opening = self._loop.create_task(begin)

        open_socket(host, port, opened, proxy)

    def publish(self, message: FleetMessage) -> int:
        """Send a message with the next `flush`; return its packet identifier.

        QoS 0 has none: a negative number is returned, and no PUBACK follows.
        """
        if not message.qos:
            self._waiting.append(message.head + message.tail)
            self._unnumbered -= 1
            return self._unnumbered
        mid = self.packet_identifiers.next()
        self._waiting.append(message.packet(mid))
        return mid

    def publish_again(self, mid: int, message: FleetMessage, *, dup: bool = True) -> None:
        """Resend a message under its old packet identifier with the next `flush`.

        Without `dup` the session at the server does not know it.
        """
        self.packet_identifiers.hold(mid)
        self._waiting.append(message.packet(mid, dup))

    def listen(self, on_message: OnMessage) -> None:
        """Set the handler of messages from the server.

        It calls the function that acknowledges them.
        """
        self._on_message = on_message

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        """Subscribe with QoS 1 at most.

        `on_suback` gets the broker's answer; without one a refusal is logged.
        """
        self._send(Subscribe(self.packet_identifiers.next(), list(requests)))

    def unsubscribe(self, *topic_filters: str, on_done: Callable[[], None] = lambda: None) -> None:
        """Unsubscribe; `on_done` is called once the broker has done so."""
        identifier = self.packet_identifiers.next()
        self._unsubscribed[identifier] = on_done
        self._send(Unsubscribe(identifier, topic_filters))

    def flush(self) -> None:
        """Send the queued packets."""
        if self._waiting and self._stream is not None:
            self._stream.write(b"".join(self._waiting))
            self._waiting.clear()
            self._keep_alive.sent = True

    def service(self) -> None:
        """Check the keep alive; raise LinkError if the connection has ended."""
        stream = self._stream
        if stream is not None:
            self._check(stream)
        if self._error is not None:
            raise self._error

    @property
    def blocked(self) -> bool:
        """Whether flushed bytes are still unsent."""
        return self._stream is None or self._stream.blocked

    @property
    def bytes_carried(self) -> int:
        """Bytes sent and received on the connection, TLS included."""
        return 0 if self._stream is None else self._stream.bytes_carried

    async def close(self, *, farewell: bool = False) -> None:
        """End the connection; with `farewell` by a DISCONNECT that has the will sent.

        Before MQTT 5 no DISCONNECT can do that, and the will is sent if there is none. A socket
        that is being opened is closed once it is open.
        """
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._stream is None:
            return
        if farewell and self.version == MQTT_5 and self.limits is not None:
            self._send(Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE))
            self.flush()
        await self._stream.end()

    async def _begin(
        self,
        sock: socket.socket,
        stream: FleetStream,
        address: str,
        tls: "ssl.SSLContext | None",
        connect: Connect,
    ) -> None:
        """Start the protocol on a connected socket, with TLS if configured."""
        host = address.rpartition(":")[0]
        try:
            await self._begin_connection(sock, stream, tls, host)
        except (OSError, ValueError) as error:  # ValueError: no certificate can have that name
            problem = problem_of(error)
            if tls is not None and isinstance(error, ConnectionError):
                problem += ", in the TLS handshake: a port without TLS?"
            self._fail(f"{address}: {problem}")
        else:
            self._send(connect)
            self.flush()

    def _send(self, packet: Packet) -> None:
        self._waiting.append(encode(packet, self.version))

    def _check(self, stream: FleetStream) -> None:
        """Raise LinkError if the connection has ended, and send PINGREQ when due."""
        now = self._loop.time()
        self._keep_alive.note(now)
        if stream.lost is not None:
            self._lost(stream.lost, stream.end_kind)
        elif self._keep_alive.over(now):
            text = "the connection to the fleet's broker is lost: no answer to PINGREQ"
            self._fail(text, End.LOST)
        # While a long packet is sent, a PINGREQ would only queue after it and count as lost.
        elif self.limits is not None and not stream.blocked and self._keep_alive.due(now):
            self._send(PingReq())
        self.flush()

    def _arrived(self, data: bytes) -> None:
        """Handle received packets."""
        if self._error is not None or self._closed:
            return
        self._keep_alive.received = True
        try:
            try:
                self._handle_bytes(data)
            except (MalformedPacket, ProtocolError) as error:
                self._fail(f"the fleet's broker sent what is no MQTT: {error}", End.MALFORMED)
            self.on_read()
        except Exception as error:
            # the uplink's border (ARCHITECTURE.md): the code that reads the socket has no handler
            logger.exception("uplink: unexpected error")
            self._fail(f"{type(error).__name__}: {error}")

    def _handle_bytes(self, data: bytes) -> None:
        while data:
            if self._oversized is not None:
                data = self._pass_by(self._oversized, data)
                continue
            try:
                self._handle_whole(data)
            except MalformedPacket as error:
                if error.reason_code != ReasonCode.PACKET_TOO_LARGE:
                    raise
                data = self._framer.pop_rest()
                if not is_publish(data[0]):
                    raise
                self._oversized = OversizedPublish(data)
            else:
                return

    def _pass_by(self, oversized: OversizedPublish, data: bytes) -> bytes:
        """Skip a message until its last byte; return what follows it."""
        after = oversized.pass_by(data)
        if oversized.over:
            self._oversized = None
            most = self._settings.packet_bytes
            self._skip(oversized, f"it has {oversized.size} bytes; at most {most}")
        return after

    def _skip(self, oversized: OversizedPublish, why: str) -> None:
        topic, packet_id = oversized.head()
        self.on_skipped(topic, why)
        if packet_id:
            self._send(_receipt(oversized.qos, packet_id, ReasonCode.QUOTA_EXCEEDED))
            self.flush()

    def _handle_whole(self, data: bytes) -> None:
        framer = self._framer
        framer.feed(data)
        while first_byte := framer.next_frame():
            buffer, start, end = framer.buffer, framer.body, framer.end
            size = end - start
            if first_byte == _PUBACK and (
                size == _SHORT_PUBACK or (size > _SHORT_PUBACK and self.version == _MQTT_5)
            ):
                # whatever the code: some brokers answer with one that is invalid in a PUBACK
                mid = buffer[start] << 8 | buffer[start + 1]
                self.packet_identifiers.in_use.discard(mid)
                self._acknowledged(mid, buffer[start + 2] if size > _SHORT_PUBACK else _SUCCESS)
            elif first_byte == _CONNACK and buffer[start:end] == _OLD_CONNACK:
                self._connected(ConnAck(reason_code=ReasonCode.UNSUPPORTED_PROTOCOL_VERSION))
            else:
                self._read(buffer, first_byte, start, end)

    def _read(self, buffer: bytes, first_byte: int, start: int, end: int) -> None:
        try:
            packet = decode(buffer, first_byte, start, end, self.version)
        except ProtocolError as error:
            if error.reason_code != ReasonCode.QUOTA_EXCEEDED or not is_publish(first_byte):
                raise
            oversized = OversizedPublish(buffer[self._framer.start : end])
            oversized.pass_by(buffer[self._framer.start : end])
            self._skip(oversized, error.reason)
        else:
            self._handle(packet)

    def _handle(self, packet: Packet) -> None:
        self._wake()
        if isinstance(packet, Publish):
            self._message(packet)
        elif isinstance(packet, PubRel):
            self._send(PubComp(packet.packet_id))  # also an unknown one's, of an earlier connection
            self.flush()
        elif isinstance(packet, ConnAck):
            self._connected(packet)
        elif isinstance(packet, SubAck):
            self.packet_identifiers.release(packet.packet_id)
            self.on_suback(packet)
        elif isinstance(packet, UnsubAck):
            self.packet_identifiers.release(packet.packet_id)
            self._unsubscribed.pop(packet.packet_id, _nothing)()
        elif isinstance(packet, Disconnect):
            self._ended_by(packet.reason_code)

    def _ended_by(self, code: ReasonCode) -> None:
        if code == ReasonCode.SESSION_TAKEN_OVER:
            self._end(TakenOverError(self._settings.fleet_client_id))
        else:
            self._fail(f"the fleet's broker ended the connection: {in_words(code)}", end_of(code))

    def _message(self, publish: Publish) -> None:
        def acknowledge() -> None:
            if publish.qos and not self._closed:
                self._send(_receipt(publish.qos, publish.packet_id))
                self.flush()

        if self._on_message is None:
            acknowledge()
        else:
            self._on_message(publish, acknowledge)

    def _connected(self, connack: ConnAck) -> None:
        self.connack, self.session_present = connack, connack.session_present
        error = refusal_of(connack, self.version, bridge=self._bridge)
        if error is not None:
            self._end(error)
            return
        granted = connack.properties
        if granted.server_keep_alive is not None:  # [MQTT-3.2.2-21]
            self._keep_alive.seconds = granted.server_keep_alive
        bound = self._settings.maximum_packet_size_out
        self.limits = limits_of(granted, self.version, bound)

    def _doubts(self) -> str:
        """Return what a broker may refuse that says nothing."""
        settings, version = self._settings, "MQTT 5" if self.version == MQTT_5 else "MQTT"
        doubts = f"does the fleet's broker speak {version}?"
        if settings.announces and settings.status_retained:
            way = "reports" if settings.notifications is None else "[uplink.notifications] retain"
            doubts += f" does it take a retained will? {way} = false sends none"
        return doubts

    def _lost(self, reason: str, end: End) -> None:
        if self.limits is None:
            why = f": {reason}" if reason else ""
            self._fail(f"the connection ended before CONNACK{why} ({self._doubts()})", end)
        elif end is End.CLOSED:
            self._fail(
                f"the connection to the fleet's broker is lost: it was closed without a reason"
                f" code{reason and f' ({reason})'}, as by a restart, by a proxy, or where a second"
                f" gateway uses the client identifier {self._settings.fleet_client_id!r}",
                end,
            )
        else:
            self._fail(f"the connection to the fleet's broker is lost: {reason}", end)

    def _fail(self, text: str, end: End = End.FAILED) -> None:
        self._end(LinkError(text, end))

    def _end(self, error: LinkError) -> None:
        self._error = self._error or error
        self._wake()


def _nothing() -> None:
    """Do nothing: nobody waits for this answer."""


def _log_refused(suback: SubAck) -> None:
    for reason in suback.reason_codes:
        if reason >= FAILURE:
            logger.warning("the fleet's broker refused the subscription: %s", in_words(reason))


async def answers(settings: UplinkSettings) -> bool:
    """Return whether something takes connections at the first address."""
    target = urlsplit(settings.url or "")
    try:
        proxy = proxy_of(settings)
    except OSError:
        return False
    return await is_reachable(target.hostname or "", target.port or PORTS[target.scheme], proxy)
