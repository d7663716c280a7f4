"""Runs: PUBLISH packets of one topic, one behind the other, that go out as they came in."""

from typing import TYPE_CHECKING, cast

from gateway.broker.access import may_publish
from gateway.broker.client import Client
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.routing.recipient import Recipient
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def pass_on(broker: "Broker", client: Client, packet: Publish) -> bool:
    """Pass a message of QoS 0, and all behind it that differ in their payload alone, to everyone.

    Returns False, with nothing done, unless the packet can go out to each receiver in the very
    bytes in which it came: not retained, without properties, to clients of the same protocol
    version that are ready for it, whatever its payload says. Then it is to be handled like any
    other, and so are those behind it.
    """
    if packet.qos or packet.retain or packet.properties is not NO_PROPERTIES:
        return False
    if client.session is None or broker.settings.p2p:
        return False
    if not may_publish(packet.topic) or broker.topic_limits.fault(packet.topic):
        return False
    recipients = broker.router.plain_recipients(packet.topic)
    if recipients is None:
        return False
    size = client.connection.frame_size
    version = client.connection.version
    if not size or not all(_takes(recipient, version, size) for recipient in recipients):
        return False
    data, count = client.connection.take_run(packet)
    payload_bytes = count * len(packet.payload)
    broker.traffic.messages_received += count
    broker.traffic.bytes_received += payload_bytes
    for recipient in recipients:
        cast("Session", recipient.subscriber).send_run(data, count, payload_bytes)
    return True


def _takes(recipient: Recipient, version: int, size: int) -> bool:
    subscriber = recipient.subscriber
    return (
        isinstance(subscriber, Session)
        and not recipient.identifiers
        and subscriber.takes_runs(version, size)
    )
