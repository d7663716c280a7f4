"""Runs: PUBLISH packets of one topic, one behind the other, that go out as they came in."""

from typing import TYPE_CHECKING, cast

from gateway.broker import numbered_runs, retained_runs
from gateway.broker.access import may_publish
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.lone_way import LoneWay
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.publish_form import rewrite
from gateway.mqtt.received_runs import (
    begin_run,
    begins_with,
    bytes_alone,
    frame_size,
    plain_head,
    take_run,
)
from gateway.routing.recipient import Recipient
from gateway.session import runs
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def pass_on(broker: "Broker", client: Client, packet: Publish, instant: Instant) -> bool:
    """Pass a message, and all behind it that differ in their payload alone, to everyone.

    At QoS 1 and 2 they differ in their packet identifiers, too, and are answered. Returns False,
    with nothing done, unless the packet can go out to each receiver as it came, but for that
    identifier, or rewritten for its QoS or protocol version: not retained, for the first time,
    without properties, to clients that are ready for it, whatever its payload says, or is to wait
    for clients that are away, at QoS 1. Then it is to be handled like any other, and so are those
    behind it.
    """
    if packet.dup or packet.properties is not NO_PROPERTIES:
        return False
    session = client.session
    if session is None or broker.settings.p2p:
        return False
    if not may_publish(packet.topic) or broker.topic_limits.fault(packet.topic):
        return False
    if packet.retain:
        return packet.qos < 2 and retained_runs.keep(broker, client, session, packet, instant)
    recipients = broker.router.plain_recipients(packet.topic, packet.qos)
    if recipients is None:
        return False
    if packet.qos:
        return numbered_runs.pass_on(broker, client, session, packet, recipients, instant)
    return _pass_on(broker, client, packet, recipients)


def _pass_on(
    broker: "Broker", client: Client, packet: Publish, recipients: tuple[Recipient, ...]
) -> bool:
    """Do it at QoS 0, for all that came in one piece."""
    connection = client.connection
    largest = _largest(recipients, connection.version)
    if not 0 < frame_size(connection) <= largest:
        return False
    head = plain_head(connection, packet.topic)
    client.last_topic = packet.topic, head
    client.way = None
    _send(broker, connection, head, recipients, largest)
    return True


def pass_on_again(broker: "Broker", client: Client, instant: Instant) -> bool:
    """Do what `pass_on` does with the next packet if it is of a topic that was passed on last.

    The head is what stood before the payload then: where the same bytes stand again, flags, topic
    name and properties are as valid as they were. Returns False, with nothing done, otherwise.
    """
    if client.last_topic is not None:
        topic, head = client.last_topic
        if _pass_on_again(broker, client, topic, head):
            return True
    if client.last_numbered is None:
        return False
    first_byte, topic, name = client.last_numbered
    return numbered_runs.pass_on_again(broker, client, first_byte, topic, name, instant)


def _pass_on_again(broker: "Broker", client: Client, topic: str, head: bytes) -> bool:
    """Do it at QoS 0."""
    connection = client.connection
    size = begins_with(connection, head)
    if not size:
        return False
    recipients = broker.router.plain_recipients(topic, 0)
    if recipients is None:
        return False
    largest = _largest(recipients, connection.version)
    if size > largest:
        return False
    begin_run(connection, size)
    _send(broker, connection, head, recipients, largest)
    return True


def pass_on_alone(broker: "Broker", client: Client, data: bytes, last: tuple[str, bytes]) -> bool:
    """Do the same with what was just read, if that is one such packet and nothing else.

    `last` is `Client.last_topic`. What is not busy sends so; it need not be looked for packets
    then. `data` is not received yet.
    """
    topic, head = last
    connection = client.connection
    payload_bytes = bytes_alone(connection, data, head)
    if payload_bytes < 0:
        return False
    receivers = _receivers_alone(broker, client, topic, head, len(data))
    if receivers is None:
        return False
    connection.packets_received += 1
    traffic = broker.traffic
    traffic.messages_received += 1
    traffic.bytes_received += payload_bytes
    for receiver in receivers:
        receiver.send_run(data, 1, payload_bytes)
    return True


def _receivers_alone(
    broker: "Broker", client: Client, topic: str, head: bytes, size: int
) -> list[Session] | None:
    """Return the sessions that can be sent a packet of `size` bytes just as it came.

    None if it is not that easy for one of those that get it. If there is but one, the client has a
    way to it from now on.
    """
    recipients = broker.router.plain_recipients(topic, 0)
    if recipients is None:
        return None
    version = client.connection.version
    receivers: list[Session] = []
    for recipient in recipients:
        session = recipient.subscriber
        if recipient.identifiers or not isinstance(session, Session):
            return None
        receiver = session.clear_connection()
        if (
            receiver is None
            or session.on_room is not None
            or receiver.version != version
            or receiver.outbound_aliases is not None
            or size > receiver.maximum_packet_size
        ):
            return None
        receivers.append(session)
    if len(receivers) == 1:
        client.way = LoneWay(
            broker.router.routes, broker.traffic, client.connection, receivers[0], head
        )
    return receivers


def _send(
    broker: "Broker",
    connection: Connection,
    head: bytes,
    recipients: tuple[Recipient, ...],
    largest: int,
) -> None:
    """Pass on the packet that was taken last, and those behind it that have the same head."""
    run = take_run(connection, head, largest)
    count = run.count
    properties = connection.version == MQTT_5
    payload_bytes = run.bytes_behind(len(head))
    broker.traffic.messages_received += count
    broker.traffic.bytes_received += payload_bytes
    rewritten: bytes | None = None
    for recipient in recipients:
        receiver = cast("Session", recipient.subscriber)
        if (cast("Connection", receiver.connection).version == MQTT_5) == properties:
            receiver.send_run(run.data, count, payload_bytes)
        else:
            if rewritten is None:
                topic = head[: len(head) - properties]
                rewritten = rewrite(run, topic, len(head), 0, properties=not properties).data
            receiver.send_run(rewritten, count, payload_bytes)


def _largest(recipients: tuple[Recipient, ...], version: int) -> int:
    """Return the bytes of the largest packet that all take as it came, 0 if one takes none."""
    largest = NO_LIMIT
    for recipient in recipients:
        subscriber = recipient.subscriber
        if recipient.identifiers or not isinstance(subscriber, Session):
            return 0
        largest = min(largest, runs.largest(subscriber, version))
    return largest
