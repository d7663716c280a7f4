"""How what a session is owed becomes packets of its connection, one by one."""

from typing import TYPE_CHECKING

from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_5, PubRel
from gateway.session.delivery import Delivery
from gateway.session.queued_messages import send_queued
from gateway.session.templates import Templates, wire_for_one

if TYPE_CHECKING:
    from gateway.session.session import Session


def send_again(session: "Session", connection: Connection, now: float) -> None:
    """Send in the original order what an earlier connection left over [MQTT-4.4.0-1]."""
    inflight = session.inflight
    while inflight.to_send_again and inflight.has_room and not connection.congested:
        packet_id, message = inflight.send_again()
        delivery = message.delivery
        mark = session.journal.again(delivery) if delivery.qos == 2 else 0
        if message.released:
            connection.send(PubRel(packet_id), mark)
            continue
        if not send_one(session, connection, delivery, None, packet_id, now, mark, dup=True):
            session.drop(packet_id, delivery)


def send_waiting(session: "Session", connection: Connection, now: float) -> None:
    """Send what waits in the queue, as far as there is room for it."""
    queue, inflight = session.queue, session.inflight
    while len(queue) and not connection.congested and not inflight.to_send_again:
        if queue.waits_for_page or (queue.next_run and not inflight.has_room):
            return
        if send_queued(session, connection):
            continue
        delivery = queue.first()
        if delivery.qos and not inflight.has_room:
            return
        queue.popleft()
        if delivery.expired(now):
            session.journal.done(delivery)
            session.counters.add("publish/messages/expired")
        elif delivery.qos:
            send_counted(session, connection, delivery, None, now)
        else:
            send_one(session, connection, delivery, None, 0, now)


def send_counted(
    session: "Session",
    connection: Connection,
    delivery: Delivery,
    templates: Templates | None,
    now: float,
) -> None:
    """Send a delivery of QoS 1 or 2, which counts against the client's Receive Maximum."""
    packet_id = session.inflight.add(delivery)
    # what would come twice if the packet identifier were forgotten waits until it is on disk
    mark = session.journal.sent(delivery, packet_id) if delivery.qos == 2 else 0
    if not send_one(session, connection, delivery, templates, packet_id, now, mark):
        session.drop(packet_id, delivery)


def send_one(
    session: "Session",
    connection: Connection,
    delivery: Delivery,
    templates: Templates | None,
    packet_id: int,
    now: float,
    mark: int = 0,
    dup: bool = False,
) -> bool:
    """Put the PUBLISH into the connection's output; False if it is too large for the client.

    `templates` is None for a message that nobody else is sent at this moment.
    A message above the client's Maximum Packet Size is dropped for it [MQTT-3.1.2-24].
    """
    data = _wire(connection, delivery, templates, packet_id, now, dup)
    if len(data) > connection.maximum_packet_size:
        session.counters.add("publish/messages/dropped")
        return False
    connection.send_encoded(data, mark)
    session.traffic.messages_sent += 1
    session.traffic.bytes_sent += len(delivery.message.payload)
    return True


def _wire(
    connection: Connection,
    delivery: Delivery,
    templates: Templates | None,
    packet_id: int,
    now: float,
    dup: bool,
) -> bytes:
    message, version = delivery.message, connection.version
    expiry = None
    if message.message_expiry is not None and version == MQTT_5:
        # [MQTT-3.3.2-6]: the interval less the time the message has been waiting here
        expiry = max(0, message.message_expiry - int(now - message.arrived))
    qos, retain = delivery.qos, delivery.retain
    identifiers = delivery.subscription_identifiers
    aliases = None if dup else connection.outbound_aliases
    if aliases is not None:
        template = (templates or Templates(message)).template(version)
        return aliases.wire(template, qos, retain, packet_id, identifiers, expiry)
    if templates is None:
        return wire_for_one(message, version, qos, retain, dup, packet_id, identifiers, expiry)
    template = templates.template(version)
    return template.wire(qos, retain, dup, packet_id, identifiers, expiry)
