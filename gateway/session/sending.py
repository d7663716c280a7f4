"""Encodes a session's messages as PUBLISH packets into the output of its connection."""

from typing import TYPE_CHECKING

from gateway.mqtt.codec.publish import DUP
from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_5, PubRel
from gateway.mqtt.publication import PacketBatch, Publication
from gateway.mqtt.publish_encoder import encode, encode_with_alias
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.session.session import Session

_PUBLISH = 0x30
_DUP = DUP

LARGE = 64 * 1024
"""Bytes of a packet above which each output gets its own copy, so that the part that the kernel has
accepted is freed."""

_LARGE = LARGE  # compiled, a C name


def send(
    session: "Session",
    connection: Connection,
    publication: Publication,
    first: int,
    count: int,
    qos: int,
    retain: bool,
    subscription_identifiers: tuple[int, ...],
    span: Span | None,
    now: float,
    commit: int = 0,
) -> None:
    """Queue messages, from number `first` on, as PUBLISH packets that wait for `commit`.

    Those of QoS 1 and 2 belong to `span`, which has their packet identifiers. A message above the
    client's Maximum Packet Size is dropped [MQTT-3.1.2-24].
    """
    first_byte = _PUBLISH | qos << 1 | retain
    aliases = connection.outbound_aliases
    # each packet's topic depends on those before it: they are encoded one by one
    if aliases is not None:
        limit = connection.maximum_packet_size
        for number in range(first, first + count):
            packets = encode_with_alias(
                publication, number, first_byte, subscription_identifiers, now, aliases, limit
            )
            _send_one(session, connection, packets, number, span, commit)
        return
    mqtt5 = connection.version == MQTT_5
    packets = encode(publication, first_byte, mqtt5, subscription_identifiers, now)
    # only some of them are too large
    if packets.largest > connection.maximum_packet_size:
        for number in range(first, first + count):
            _send_one(session, connection, packets.part(number, 1), number, span, commit)
        return
    data: bytes | bytearray
    whole = count == packets.count
    if span is not None:
        data = packets.numbered(first, count, span.packet_id)
    else:
        data = packets.data if whole else packets.slice(first, count)
        if subscription_identifiers and len(data) >= _LARGE:
            data = bytearray(data)
    connection.send_encoded(data, count, commit)
    traffic = session.traffic
    traffic.messages_sent += count
    traffic.bytes_sent += packets.payloads if whole else packets.payload_bytes(first, count)


def _send_one(
    session: "Session",
    connection: Connection,
    packet: PacketBatch,
    number: int,
    span: Span | None,
    commit: int,
) -> None:
    """Queue one packet, or drop its message; `number` is its number in the publication."""
    if packet.largest > connection.maximum_packet_size:
        if span is None or span.channel is None:  # a channel gives it to another consumer
            session.counters.add("publish/messages/dropped")
        if span is not None:
            session.drop(span, number)
        return
    if span is None:
        data: bytes | bytearray = packet.data
        if len(data) >= _LARGE:
            data = bytearray(data)
    else:
        data = packet.numbered(0, 1, span.packet_id + number - span.first)
    connection.send_encoded(data, 1, commit)
    session.traffic.messages_sent += 1
    session.traffic.bytes_sent += packet.payloads


def send_span(
    session: "Session", connection: Connection, span: Span, now: float, commit: int = 0
) -> None:
    """Send a span of QoS 1 or 2 that fits into the window, after `commit`."""
    session.inflight.add(span)
    if span.qos == 2:
        # the identifier must be stored first: a crash that forgot it would send the message twice
        commit = session.journal.sent(span)
    send(
        session,
        connection,
        span.publication,
        span.first,
        span.count,
        span.qos,
        span.retain,
        span.subscription_identifiers,
        span,
        now,
        commit,
    )


def send_waiting(session: "Session", connection: Connection, now: float) -> None:
    """Send queued messages within the limits of the window and the output."""
    queue, inflight = session.queue, session.inflight
    # those of an earlier connection come first [MQTT-4.4.0-1]
    while not inflight.resend:
        span, bytes_free = queue.first(), connection.maximum_unsent - connection.output.size
        if span is None or bytes_free <= 0:
            if session.unchecked:
                _check_no_more(session)
            return
        publication = span.publication
        count = span.count
        if session.unchecked:
            count = _readable(session, span)
            if count < 0:
                return
            if not count:
                continue
        if publication.properties.expiry is not None and publication.expired(now):
            queue.pop(span.count)
            session.journal.done(span, span.first, span.count)
            session.counters.add("publish/messages/expired", span.count)
            continue
        if count > 1:
            count = publication.fitting(span.first, count, bytes_free)
        if span.qos:
            count = inflight.capacity(publication, span.first, count)
            if not count:
                return
        span = queue.pop(count)
        if span.qos:
            send_span(session, connection, span, now)
        else:
            send(
                session,
                connection,
                publication,
                span.first,
                span.count,
                0,
                span.retain,
                span.subscription_identifiers,
                None,
                now,
            )


def _check_no_more(session: "Session") -> None:
    """Stop checking rights once the queue is empty, unless the connection's rights differ."""
    if not session.queue.messages:
        session.unchecked = session.granted is not session.access


def _readable(session: "Session", span: Span) -> int:
    """Return how many messages of the next span may be read now.

    Returns 0 if none may be read: they are set aside, or dropped at QoS 0, which waits for no other
    connection. Returns -1 if the limit of those set aside is reached.
    """
    # messages of one topic share its rights
    count = 1 if span.publication.mixed else span.count
    if session.may_read(span.publication.topic_of(span.first)):
        return count
    if not span.qos:
        session.queue.pop(count)
        session.counters.add("tidegate/access/withheld", count)
        return 0
    if not session.queue.hold_back(count):
        return -1
    session.counters.add("tidegate/access/held_back", count)
    return 0


def resend(session: "Session", connection: Connection, now: float) -> None:
    """Resend in the original order what was not acknowledged before [MQTT-4.4.0-1]."""
    inflight = session.inflight
    while inflight.resend and inflight.has_capacity and not connection.congested:
        packet_id, span = inflight.pop_resend()
        commit = session.journal.resent(span) if span.qos == 2 else 0
        if packet_id in inflight.released:
            connection.send(PubRel(packet_id), commit)
        else:
            _resend(session, connection, span, packet_id, now, commit)


def _resend(
    session: "Session", connection: Connection, span: Span, packet_id: int, now: float, commit: int
) -> None:
    """Send one message again, with DUP and with its topic name."""
    number = span.first + packet_id - span.packet_id
    first_byte = _PUBLISH | _DUP | span.qos << 1 | span.retain
    mqtt5 = connection.version == MQTT_5
    one = span.publication.one(number)
    packet = encode(one, first_byte, mqtt5, span.subscription_identifiers, now)
    _send_one(session, connection, packet, number, span, commit)
