"""Runs among the packets that a connection received: such as can be handled as one.

`Connection.next_packet` returns packets one by one. Whoever finds that the next ones are alike, of
one topic or all acknowledgements, takes them here together, and none of them is decoded.
"""

from gateway.mqtt.acknowledgement_run import LONGEST, SIZE, AcknowledgementRun, acknowledgement_run
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.fields import write_string
from gateway.mqtt.packet_run import PacketRun
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.plain_publishes import PlainPublishes
from gateway.mqtt.publish_form import behind_topic
from gateway.mqtt.publish_run import PublishRun, publish_run

PUBLISH = 0x30
"""The first byte of a PUBLISH of QoS 0 that is not retained."""

_PUBLISH = PUBLISH  # compiled, a C name that no other module sees

NO_PROPERTY = b"\0"
"""The property length of a packet without properties (MQTT 5, section 2.2.2.1)."""


def frame_size(connection: Connection) -> int:
    """Return the bytes of the packet that `next_packet` returned last.

    0 if it cannot be sent on as it came, because its remaining length is written too long.
    """
    framer = connection.framer
    return framer.size if framer.shortest else 0


def plain_head(connection: Connection, topic: str) -> bytes:
    """Return what stands before the payload in a PUBLISH of QoS 0 without properties."""
    name = write_string(topic)
    return name + NO_PROPERTY if connection.version == MQTT_5 else name


def begins_with(connection: Connection, head: bytes) -> int:
    """Return the bytes of the next packet if it is a PUBLISH of QoS 0 with this `head`, else 0.

    0 also where `next_packet` has to look at it. `begin_run` takes it in its place.
    """
    return connection.framer.like(_PUBLISH, head)


def begins_numbered(connection: Connection, first_byte: int, topic: bytes) -> int:
    """Return the same for a PUBLISH of QoS 1 or 2 that has this first byte and topic name.

    Its packet identifier and what stands behind that is for `find_run` to look at.
    """
    least = len(topic) + behind_topic(1, connection.version == MQTT_5)
    return connection.framer.like(first_byte, topic, least)


def bytes_alone(connection: Connection, data: bytes, head: bytes, first_byte: int = PUBLISH) -> int:
    """Return the bytes behind the `head` if `data` is one packet alone whose body begins so.

    `data` is what `receive` would take next; -1 if it has to. Who does without counts it.
    """
    return connection.framer.alone(data, first_byte, head)


def begin_run(connection: Connection, size: int) -> None:
    """Take the packet of which `begins_with` said that it has so many bytes."""
    connection.framer.skip(size)
    connection.packets_received += 1


def put_back(connection: Connection) -> None:
    """Let the packet that `begin_run` took be the next one again."""
    connection.framer.pass_over(0)
    connection.packets_received -= 1


def take_run(connection: Connection, head: bytes, largest: int) -> PacketRun:
    """Take the packets behind the last one that differ from it in nothing but their payload.

    That has this `head`: equal bytes before the payload say that the rest is such a PUBLISH
    too. Those behind it have at most `largest` bytes. Returns all of them.
    """
    run = connection.framer.run(head, len(head), largest, NO_LIMIT)
    _pass_over(connection, run)
    return run


def find_run(connection: Connection, topic: bytes, largest: int, most: int) -> PublishRun | None:
    """Find the packets behind the last one that differ in packet identifier and payload alone.

    That is a PUBLISH of QoS 1 or 2, as `next_packet` returned or `begin_run` took it, and
    `topic` is its topic name with its length; None if it has properties, or a packet
    identifier of 0. At most `most` with it, from 1 on, and of at most `largest` bytes;
    `take_numbered_run` takes them.
    """
    properties = connection.version == MQTT_5
    least = len(topic) + behind_topic(1, properties)
    run = connection.framer.run(topic, least, largest, most)
    return publish_run(run, len(topic), properties)


def take_numbered_run(connection: Connection, run: PublishRun) -> None:
    """Take the packets that `find_run` has just found, as PUBLISHes to be acknowledged."""
    _pass_over(connection, run.packets)
    connection.publishes += run.count


def _pass_over(connection: Connection, run: PacketRun) -> None:
    """Take what stands behind the first packet of the run, which was taken before."""
    connection.framer.pass_over(len(run.data))
    connection.packets_received += run.count - 1


def plain_publishes(connection: Connection, qos: int) -> PlainPublishes:
    """Return what takes the retained messages of this QoS that come next.

    `count_plain` is to follow.
    """
    return PlainPublishes(connection.framer, connection.version, qos)


def count_plain(connection: Connection, packets: PlainPublishes, to_acknowledge: int) -> None:
    """Count what was taken, and of that the PUBLISHes that are to be acknowledged."""
    connection.packets_received += packets.count
    connection.publishes += to_acknowledge


def next_byte(connection: Connection) -> int:
    """Return the first byte of the next packet, 0 where none has come, or only a part of one."""
    return connection.framer.next_byte


def find_acknowledgements(connection: Connection, first_byte: int) -> AcknowledgementRun | None:
    """Return the acknowledgements with this first byte that come next, None if none do.

    None either of one that has a reason code, or properties. `take_acknowledgements` takes them.
    """
    return acknowledgement_run(connection.framer.look_ahead(LONGEST), first_byte)


def take_acknowledgements(connection: Connection, count: int) -> None:
    """Take the first of what `find_acknowledgements` has just found."""
    connection.framer.skip(count * SIZE)
    connection.packets_received += count


def acknowledgements_alone(connection: Connection, data: bytes) -> AcknowledgementRun | None:
    """Return the acknowledgements that `data` is, None if it is anything else, or more.

    `data` is what `receive` would take next. Who does without counts them.
    """
    if len(data) % SIZE or not connection.framer.idle():
        return None
    run = acknowledgement_run(data, data[0])
    return run if run is not None and run.count * SIZE == len(data) else None
