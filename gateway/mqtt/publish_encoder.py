"""Encodes a publication's PUBLISH packets in the form that each receiver needs.

MQTT 5, section 3.3. Every PUBLISH that the gateway sends is encoded here, or forwarded as received.
"""

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.codec.fields import SINGLE_BYTES, write_string, write_variable_byte_integer
from gateway.mqtt.codec.publish import (
    NO_PUBLISH_PROPERTIES,
    PublishProperties,
    of_fields,
    property_block,
    publish_first_byte,
)
from gateway.mqtt.message import Message
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import PacketBatch, Publication, uneven_batch

_SINGLE_BYTES = SINGLE_BYTES  # compiled, a C name
_QOS = 0x06  # the bits of the first byte that hold the QoS
_NO_TOPIC = b"\0\0"

ALIAS_GROWTH = 5
"""The most bytes that a topic alias adds to a packet with a topic name: the property, and one byte
more of the property length and of the remaining length."""


def encode(
    publication: Publication,
    first_byte: int,
    mqtt5: bool,
    subscription_identifiers: tuple[int, ...],
    now: float,
) -> PacketBatch:
    """Return the packets of a publication with this first byte, for MQTT 5 or an older version.

    `now` is monotonic seconds: the rest of a message expiry interval is sent [MQTT-3.3.2-6]. The
    caller fills in packet identifiers (`PacketBatch.numbered`).
    """
    properties = publication.properties
    if mqtt5 and (subscription_identifiers or properties.expiry is not None):
        expiry = remaining_expiry(publication, now)
        if subscription_identifiers or expiry != properties.expiry:
            block = property_block(properties, expiry, subscription_identifiers, 0)
            name = b"" if publication.mixed else publication.topic_name
            return write_packets(publication.packets, first_byte, name, block)
    if first_byte == publication.first_byte and mqtt5 == publication.mqtt5:
        return publication.packets
    return form(publication, first_byte, mqtt5)


def remaining_expiry(publication: Publication, now: float) -> int | None:
    """Return the rest of the message expiry interval, None without one [MQTT-3.3.2-6]."""
    expiry = publication.properties.expiry
    return None if expiry is None else max(0, expiry - int(now - publication.arrived))


def encode_with_alias(
    publication: Publication,
    number: int,
    first_byte: int,
    subscription_identifiers: tuple[int, ...],
    now: float,
    aliases: OutboundAliases,
    maximum_packet_size: int,
) -> PacketBatch:
    """Return one MQTT 5 packet of a publication, with a topic alias if that is worthwhile.

    Close to the client's Maximum Packet Size there is none: the packet may have to be resent with
    its topic name, and the client must accept that, too.
    """
    publication = publication.one(number)
    packets = encode(
        publication,
        first_byte,
        mqtt5=True,
        subscription_identifiers=subscription_identifiers,
        now=now,
    )
    if packets.largest + ALIAS_GROWTH > maximum_packet_size:
        return packets
    alias, known = aliases.choose(publication.topic_name)
    if not alias:
        return packets
    expiry = remaining_expiry(publication, now)
    block = property_block(publication.properties, expiry, subscription_identifiers, alias)
    name = _NO_TOPIC if known else publication.topic_name
    return write_packets(packets, first_byte, name, block)


def form(publication: Publication, first_byte: int, mqtt5: bool) -> PacketBatch:
    """Return the packets of a publication with this first byte, otherwise as published.

    They are made once for all receivers while the publication shares its forms.
    """
    key = first_byte << 1 | mqtt5
    forms = publication.forms
    if forms is not None:
        found = forms.get(key)
        if found is not None:
            return found
    properties, block = publication.properties, b""
    if mqtt5:
        block = b"\0"
        if properties.data or properties.expiry is not None:
            block = property_block(properties, properties.expiry, (), 0)
    name = b"" if publication.mixed else publication.topic_name
    written = write_packets(publication.packets, first_byte, name, block)
    if forms is not None:
        forms[key] = written
    return written


def write_packets(
    packets: PacketBatch, first_byte: int, topic_name: bytes, properties: bytes
) -> PacketBatch:
    """Return packets with the same payloads, this first byte, topic name and property block.

    `topic_name` includes its length; without one, if they differ, each keeps its own. `properties`
    includes its length, too, or is empty before MQTT 5. The packet identifiers are 0.
    """
    back = (b"\0\0" if first_byte & _QOS else b"") + properties
    middle = topic_name + back
    data = packets.data
    first = _SINGLE_BYTES[first_byte]
    if packets.count == 1:
        content = data[packets.body + packets.payload :] if packets.size else packets.one(0)
        payload = len(middle)
        head = first + write_variable_byte_integer(payload + len(content)) + middle
        data = head + content
        return PacketBatch(data, len(data), len(head) - payload, len(topic_name), payload)
    parts: list[bytes] = []
    starts: list[int] = []
    offsets: list[int] = []
    start = number = 0
    ends = [*packets.starts[1:], len(data)]
    for offset, end in zip(packets.offsets, ends, strict=True):
        if not topic_name:
            middle = packets.topic_name(number) + back
            number += 1
        content = data[offset:end]
        head = first + write_variable_byte_integer(len(middle) + len(content)) + middle
        starts.append(start)
        offsets.append(start + len(head))
        parts += (head, content)
        start += len(head) + len(content)
    joined = b"".join(parts)
    if packets.size:
        size, payload = start // len(starts), len(middle)
        return PacketBatch(joined, size, offsets[0] - payload, len(topic_name), payload)
    return uneven_batch(joined, starts, offsets, len(back))


def write_publish(
    first_byte: int, topic_name: bytes, payload: bytes, properties: bytes
) -> PacketBatch:
    """Return one packet; `topic_name` and `properties` are as in `write_packets`."""
    middle = topic_name + (b"\0\0" if first_byte & _QOS else b"") + properties
    size = len(middle)
    head = _SINGLE_BYTES[first_byte] + write_variable_byte_integer(size + len(payload)) + middle
    data = head + payload
    return PacketBatch(data, len(data), len(head) - size, len(topic_name), size)


def publication_of(message: Message) -> Publication:
    """Return a message of the gateway's own, or a stored one, as a publication."""
    fields = message.properties()
    publication = make_publication(
        message.topic, message.payload, message.qos, message.retain, fields
    )
    publication.client_id = message.client_id
    publication.username = message.username
    publication.received_at = message.received_at
    publication.arrived = message.arrived
    publication.commit_within = message.commit_within
    publication.messages = [message]
    return publication


def make_publication(
    topic: str, payload: bytes, qos: int, retain: bool, fields: Properties = NO_PROPERTIES
) -> Publication:
    """Return a publication of one message; with properties its packet is of MQTT 5."""
    return publication_of_one(topic, write_string(topic), payload, qos, retain, of_fields(fields))


def publication_of_one(
    topic: str,
    topic_name: bytes,
    payload: bytes,
    qos: int,
    retain: bool,
    properties: PublishProperties,
) -> Publication:
    """Return the same from encoded parts; the topic name includes its length."""
    mqtt5 = properties is not NO_PUBLISH_PROPERTIES
    block = property_block(properties, properties.expiry, (), 0) if mqtt5 else b""
    first_byte = publish_first_byte(qos, retain, dup=False)
    packets = write_publish(first_byte, topic_name, payload, block)
    publication = Publication(packets, first_byte, mqtt5, topic_name, properties)
    publication.topic = topic
    return publication
