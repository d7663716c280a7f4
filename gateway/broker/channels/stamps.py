"""The user properties that tell a consumer of MQTT 5 which message it has."""

from itertools import count as counting

from gateway.mqtt.codec.fields import write_string, write_variable_byte_integer
from gateway.mqtt.codec.publish import PublishProperties, publish_first_byte
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.publication import PacketBatch, Publication
from gateway.mqtt.publish_encoder import publication_of_one, write_packets
from gateway.session.span import Span

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

_serials = counting(1)


def message_id(span: Span, number: int) -> int:
    """Return the identifier of a channel's message: the time, and where it is stored.

    A sequence number begins again once a channel is emptied, hence the time.
    """
    publication = span.publication
    time = publication.received_at or 0
    row = span.row
    if row is not None:
        serial = row.base + number
        # the level above the lowest 17 bits: each level has numbers of its own
        return time << _BITS | (serial ^ serial >> _TO_SERIAL) & _SERIAL
    if not publication.serial:
        publication.serial = next(_serials)
    return time << _BITS | _UNSTORED | (publication.serial + number) & _SERIAL


def stamped(span: Span, qos: int, retain: bool, attempt: int) -> Publication:
    """Return a span's messages as another publication, with the properties after their own.

    If there are several they must have no expiry, and be sent without a topic alias and a
    subscription identifier.
    """
    publication, first, count = span.publication, span.first, span.count
    attempts = b"%d" % attempt
    time = b"%d" % (publication.received_at or 0)
    tail = (
        _QUEUED_AT + bytes((0, len(time))) + time + _ATTEMPT + bytes((0, len(attempts))) + attempts
    )
    own = publication.properties
    fields = NO_PROPERTIES if own.expiry is None else own.fields
    data = own.data + _ID + b"%016x" % message_id(span, first) + tail
    properties = PublishProperties(data, fields)
    properties.forget_fields()
    name = publication.name_of(first)
    topic = publication.topic_of(first)
    if count == 1:
        made = publication_of_one(
            topic, name, publication.packets.one(first), qos, retain, properties
        )
    else:
        mqtt5 = True
        first_byte = publish_first_byte(qos, retain, dup=False)
        packets = _write(span, first_byte, data, len(tail))
        made = Publication(packets, first_byte, mqtt5, name, properties)
        made.topic = topic
        made.mixed = publication.mixed
    made.client_id = publication.client_id
    made.username = publication.username
    made.received_at = publication.received_at
    made.arrived = publication.arrived
    made.commit_within = publication.commit_within
    return made


def _write(span: Span, first_byte: int, data: bytes, tail: int) -> PacketBatch:
    """Return packets with these properties, each with its own identifier `tail` before the end."""
    publication, first, count = span.publication, span.first, span.count
    packets = publication.packets
    if count < packets.count:
        packets = packets.part(first, count)
    name = b"" if publication.mixed else publication.topic_name
    block = write_variable_byte_integer(len(data)) + data
    packets = write_packets(packets, first_byte, name, block)
    written = bytearray(packets.data)
    starts, offsets = packets.starts, packets.offsets
    for index in range(1, count):
        end = offsets[index] - tail
        written[end - 16 : end] = b"%016x" % message_id(span, first + index)
    if packets.size:
        packets.replace_data(bytes(written))
    else:
        packets.extend(bytes(written), [*starts], [*offsets], packets.largest)
    return packets
