"""Runs: PUBLISH packets of one topic, one behind the other, that go out as they came in."""

from typing import TYPE_CHECKING, cast

from gateway.broker import numbered_runs
from gateway.broker.access import may_publish
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.fields import write_string
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.publish_form import rewrite
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
    if packet.retain or packet.dup or packet.properties is not NO_PROPERTIES:
        return False
    session = client.session
    if session is None or broker.settings.p2p:
        return False
    if not may_publish(packet.topic) or broker.topic_limits.fault(packet.topic):
        return False
    recipients = broker.router.plain_recipients(packet.topic, packet.qos)
    if recipients is None:
        return False
    if packet.qos:
        return numbered_runs.pass_on(broker, client, session, packet, recipients, instant)
    return _pass_on(broker, client, packet, recipients)


def _pass_on(
    broker: "Broker", client: Client, packet: Publish, recipients: list[Recipient]
) -> bool:
    """Do it at QoS 0, for all that came in one piece."""
    connection = client.connection
    largest = NO_LIMIT
    for recipient in recipients:
        largest = min(largest, _takes(recipient, connection.version))
    if not 0 < connection.frame_size <= largest:
        return False
    run = connection.take_run(packet, largest)
    count = len(run.starts)
    properties = connection.version == MQTT_5
    topic = write_string(packet.topic)
    payload = len(topic) + properties
    payload_bytes = run.bytes_behind(payload)
    broker.traffic.messages_received += count
    broker.traffic.bytes_received += payload_bytes
    rewritten: bytes | None = None
    for recipient in recipients:
        receiver = cast("Session", recipient.subscriber)
        data = run.data
        if (cast("Connection", receiver.connection).version == MQTT_5) != properties:
            if rewritten is None:
                rewritten = rewrite(run, topic, payload, 0, properties=not properties).data
            data = rewritten
        runs.send(receiver, data, count, payload_bytes)
    return True


def _takes(recipient: Recipient, version: int) -> int:
    """Return the bytes of the largest packet that the recipient takes as it came, 0 if none."""
    subscriber = recipient.subscriber
    if recipient.identifiers or not isinstance(subscriber, Session):
        return 0
    return runs.largest(subscriber, version)
