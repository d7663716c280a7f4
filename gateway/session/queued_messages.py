"""Sends what waits in a session's queue many messages at a time, where they are alike enough."""

from typing import TYPE_CHECKING

from gateway.mqtt.connection import MAXIMUM_UNSENT, Connection
from gateway.mqtt.message_size import message_size
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.publish_form import GROWTH
from gateway.mqtt.publish_wire import publish_wire
from gateway.session.delivery import Delivery
from gateway.session.queue_bounds import LARGEST_OF_RUN
from gateway.session.templates import properties_of
from gateway.session.waiting_run import WaitingRun

if TYPE_CHECKING:
    from gateway.session.session import Session

FEW = 2
"""Messages below which each is sent by itself."""

_FIRST_BYTES = {retain: publish_first_byte(1, retain, dup=False) for retain in (False, True)}


def send_queued(session: "Session", connection: Connection) -> bool:
    """Send the QoS 1 messages that are next, as far as there is room; return False if few are.

    They neither expire nor have properties, for whom that is part of the packet, are surely not
    too large, and no topic alias can stand for their topics. Nothing `to_send_again` is left.
    """
    if connection.outbound_aliases is not None:
        return False
    waiting = session.queue.next_run
    if waiting is not None:
        return _send_run(session, connection, waiting)
    deliveries = _next(session, connection)
    if len(deliveries) < FEW:
        return False
    session.queue.take(deliveries)
    no_fields = b"\0" if connection.version == MQTT_5 else b""
    packets = []
    payload_bytes = 0
    for delivery, packet_id in zip(deliveries, session.inflight.add_all(deliveries), strict=True):
        message = delivery.message
        middle = packet_id.to_bytes(2, "big") + no_fields
        first_byte = _FIRST_BYTES[delivery.retain]
        packets.append(publish_wire(first_byte, message.topic, middle, message.payload))
        payload_bytes += len(message.payload)
    session.send_run(b"".join(packets), len(packets), payload_bytes)
    return True


def _send_run(session: "Session", connection: Connection, waiting: WaitingRun) -> bool:
    """Do the same with a run that is next, or as much of it as there is room for."""
    inflight, size = session.inflight, waiting.run.size
    space = MAXIMUM_UNSENT - connection.output.size
    room = min(inflight.room_for_run(size), max(1, space // size))
    if room < 1 or connection.maximum_packet_size < LARGEST_OF_RUN + GROWTH:
        return False
    waiting = session.queue.take_run(waiting, room)
    run = waiting.run
    sent = inflight.add_run(run, 1)
    sent.place, sent.row = waiting.place, waiting.row
    data = run.numbered(sent.first, 1, connection.version)
    session.send_run(data, waiting.count, run.packets.payload_bytes)
    return True


def _next(session: "Session", connection: Connection) -> list[Delivery]:
    newest = connection.version == MQTT_5
    largest = connection.maximum_packet_size
    space = MAXIMUM_UNSENT - connection.output.size
    room, room_bytes = session.inflight.room
    found: list[Delivery] = []
    for delivery in session.queue.head:
        if isinstance(delivery, WaitingRun):
            break
        message = delivery.message
        size = message_size(message)  # above that of the packet
        if delivery.qos != 1 or message.message_expiry is not None or size > largest:
            break
        if newest and (
            delivery.subscription_identifiers or properties_of(message) is not NO_PROPERTIES
        ):
            break
        if len(found) >= room or room_bytes <= 0 or space <= 0:
            break
        found.append(delivery)
        room_bytes -= size
        space -= size
    return found
