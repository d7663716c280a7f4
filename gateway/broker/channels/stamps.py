"""The user properties that tell a consumer of MQTT 5 which message it has."""

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.codec.fields import (
    SINGLE_BYTES,
    write_string,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.publish import (
    NO_PUBLISH_PROPERTIES,
    property_block,
    publish_first_byte,
)
from gateway.mqtt.connection import Connection
from gateway.mqtt.publication import Publication, body_start
from gateway.mqtt.publish_encoder import ALIAS_GROWTH, remaining_expiry
from gateway.session.session import Session
from gateway.session.span import Span
from gateway.session.traffic import Traffic

ID = "id"
"""Names a message within its channel in all attempts, and after a restart."""

QUEUED_AT = "queued_at"
"""When the gateway received it, in milliseconds since 1970."""

ATTEMPT = "attempt"
"""The number of the attempt, from 1 on."""

ID_DIGITS = 16
"""Hexadecimal digits of an identifier."""

SERIAL_BITS = 20
"""Bits of an identifier beside the time, whose highest says that a message is not stored."""

LEVEL_BITS = 60
"""Bits of a sequence number below its level (`levels.Level`)."""

_BITS = SERIAL_BITS  # compiled, C names
_SERIAL = (1 << SERIAL_BITS - 1) - 1
_TO_SERIAL = LEVEL_BITS - 17
_UNSTORED = 1 << SERIAL_BITS - 1
_ID = b"\x26" + write_string(ID) + b"\0\x10"
_QUEUED_AT = b"\x26" + write_string(QUEUED_AT)
_ATTEMPT = b"\x26" + write_string(ATTEMPT)

_SERIAL_DIGITS = SERIAL_BITS // 4 * b"0"
_SINGLE_BYTES = SINGLE_BYTES
_HEXADECIMAL = b"0123456789abcdef"
_NO_TOPIC = b"\0\0"
_NO_IDENTIFIER = b"\0\0"
_GROWTH = ALIAS_GROWTH + 4  # bytes of an alias, and by which the lengths of a packet may grow
_IDENTIFIER_SIZE = 5  # bytes of a subscription identifier


class _Serials:
    """Numbers messages that are not stored, from 1 on."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 1

    def take(self, count: int) -> int:
        """Return the first of so many numbers, which nobody else gets."""
        first = self._next
        self._next += count
        return first


_serials = _Serials()


def message_id(span: Span, number: int) -> int:
    """Return the identifier of a channel's message: the time, and where it is stored.

    A sequence number begins again once a channel is emptied, hence the time.
    """
    return (span.publication.received_at or 0) << _BITS | _serial(span, number)


def _serial(span: Span, number: int) -> int:
    row = span.row
    if row is not None:
        serial = row.base + number
        # the level above the lowest 17 bits: each level has numbers of its own
        return (serial ^ serial >> _TO_SERIAL) & _SERIAL
    publication = span.publication
    if not publication.serial:
        publication.serial = _serials.take(publication.count)
    return _UNSTORED | (publication.serial + number) & _SERIAL


class Stamps:
    """Sends messages with the properties behind their own, in packets that are written once.

    What adjacent messages have in common is made once: all but the last digits of their `id`.
    """

    __slots__ = ("_attempt", "_back", "_stamp", "_tail", "_time")

    def __init__(self) -> None:
        self._time = self._attempt = -1
        self._stamp = b""
        self._tail = 0  # its bytes behind the `id`
        self._back = b""  # packet identifier and properties of a message that has none itself

    def send(
        self,
        consumer: Session,
        connection: Connection,
        source: Span,
        sent: Span,
        attempt: int,
        now: float,
        commit: int,
    ) -> bool:
        """Queue a span's PUBLISH packets of MQTT 5, which have its packet identifiers.

        They wait for `commit`. `source` is the span in the channel. Returns False if a packet might
        exceed the client's Maximum Packet Size: messages go without the properties then.
        """
        time = source.publication.received_at or 0
        if time != self._time or attempt != self._attempt:
            self._make(time, attempt)
        growth = len(self._stamp) + _IDENTIFIER_SIZE * len(sent.subscription_identifiers) + _GROWTH
        if source.publication.packets.largest + growth > connection.maximum_packet_size:
            return False
        data = self._packets(source, sent, connection.outbound_aliases, now, consumer.traffic)
        connection.send_encoded(data, source.count, commit)
        return True

    def _make(self, time: int, attempt: int) -> None:
        """Make what messages of one time and attempt have in common."""
        tail = _QUEUED_AT + write_string(str(time)) + _ATTEMPT + write_string(str(attempt))
        self._time, self._attempt, self._tail = time, attempt, len(tail)
        self._stamp = _ID + b"%011x" % time + _SERIAL_DIGITS + tail
        self._back = _NO_IDENTIFIER + property_block(
            NO_PUBLISH_PROPERTIES, None, (), 0, self._stamp
        )

    def _packets(
        self,
        source: Span,
        sent: Span,
        aliases: OutboundAliases | None,
        now: float,
        traffic: Traffic,
    ) -> bytearray:
        """Return the packets, and count them.

        Each message of a channel passes here. What is between its topic and its payload is written
        into one buffer again and again, since few of its bytes change.
        """
        publication, first, count = source.publication, source.first, source.count
        packets, mixed, name = publication.packets, publication.mixed, publication.topic_name
        data, starts, offsets = packets.data, packets.starts, packets.offsets
        view = data  # compiled, a pointer: a slice of it costs a quarter
        first_byte = _SINGLE_BYTES[publish_first_byte(sent.qos, sent.retain, dup=False)]
        topic, buffer = name, bytearray(self._behind_topic(publication, sent, 0, now))
        back, length = buffer, len(buffer)  # likewise
        skipped = 0 if sent.qos else len(_NO_IDENTIFIER)
        serial, packet_id, fresh, place, last = 0, sent.packet_id, True, 0, packets.count - 1
        head, before, payloads = b"", -1, 0
        # from a topic's end to the payload, in the packets that came
        behind = offsets[first] - body_start(data, starts[first]) - len(publication.name_of(first))
        parts: list[bytes | bytearray] = []
        for number in range(first, first + count):
            start, offset = starts[number], offsets[number]
            end = starts[number + 1] if number < last else len(data)
            if mixed:
                start = start + 2 if view[start + 1] < 0x80 else body_start(data, start)
                topic = name = view[start : offset - behind]
            if aliases is not None:  # the topic and the properties depend on the packets before it
                alias, known = aliases.choose(name)
                topic = _NO_TOPIC if known else name
                buffer = bytearray(self._behind_topic(publication, sent, alias, now))
                back, length, fresh = buffer, len(buffer), True
            if fresh or not (serial & 15 and packet_id & 255):
                serial = _serial(source, number)
                back[0] = packet_id >> 8
                place = length - self._tail - 1  # of the last digit
                _write_digits(buffer, place, serial >> 4)
                fresh = False
            back[1] = packet_id & 255
            back[place] = _HEXADECIMAL[serial & 15]
            size = len(topic) + length - skipped + end - offset
            if size != before:
                before = size
                head = first_byte + write_variable_byte_integer(size)
            parts.append(head)
            parts.append(topic)
            parts.append(back[skipped:length])
            parts.append(view[offset:end])
            payloads += end - offset
            packet_id += 1
            serial += 1  # its last digit: the others are written after each sixteenth
        traffic.messages_sent += count
        traffic.bytes_sent += payloads
        return bytearray().join(parts)

    def _behind_topic(self, publication: Publication, sent: Span, alias: int, now: float) -> bytes:
        """Return two bytes for the packet identifier, and the property block."""
        properties, identifiers = publication.properties, sent.subscription_identifiers
        if not (properties.data or identifiers or alias) and properties.expiry is None:
            return self._back
        expiry = remaining_expiry(publication, now)
        block = property_block(properties, expiry, identifiers, alias, self._stamp)
        return _NO_IDENTIFIER + block


def _write_digits(buffer: bytearray, end: int, number: int) -> None:
    """Write a serial number before `end`, where its last digit is, which `number` is without."""
    digits = _HEXADECIMAL
    buffer[end - 1] = digits[number & 15]
    buffer[end - 2] = digits[number >> 4 & 15]
    buffer[end - 3] = digits[number >> 8 & 15]
    buffer[end - 4] = digits[number >> 12]
