"""Sends a session many messages at once, which it alone is sent in this form."""

from collections.abc import Sequence

from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.fields import write_variable_byte_integer
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.publish_template import identifier_fields
from gateway.mqtt.publish_wire import publish_wire
from gateway.session import runs
from gateway.session.delivery import Delivery
from gateway.session.session import Session
from gateway.session.templates import Templates, properties_of

_FIRST_BYTE = publish_first_byte(0, retain=True, dup=False)


def replay(
    session: Session,
    messages: Sequence[Message],
    qos: int,
    subscription_identifiers: tuple[int, ...],
    now: float,
) -> None:
    """Send, queue or drop retained messages that the session has subscribed to with this QoS.

    RETAIN is set on what is sent because of a SUBSCRIBE [MQTT-3.3.1-8].
    """
    place = 0
    while place < len(messages):
        place = _send_many(session, messages, place, qos, subscription_identifiers)
        if place < len(messages):
            message = messages[place]
            delivery = Delivery(
                message,
                min(qos, message.qos),
                retain=True,
                subscription_identifiers=subscription_identifiers,
            )
            session.deliver(delivery, Templates(message), now)
            place += 1


def _send_many(
    session: Session,
    messages: Sequence[Message],
    place: int,
    qos: int,
    subscription_identifiers: tuple[int, ...],
) -> int:
    """Send QoS 0 messages from `place` on; return the place of the first that was not sent.

    It has properties, or another QoS, or is too large, or there is no more room before it.
    """
    connection = session.connection
    if connection is None or connection.outbound_aliases is not None or not session.ready(0):
        return place
    fields = b""
    newest = connection.version == MQTT_5
    if newest:
        fields = identifier_fields(subscription_identifiers)
        fields = write_variable_byte_integer(len(fields)) + fields
    largest = connection.maximum_packet_size
    room = MAXIMUM_UNSENT - connection.output.size
    packets: list[bytes] = []
    payload_bytes = 0
    for number in range(place, len(messages)):
        message = messages[number]
        if (qos and message.qos) or room <= 0:
            break
        if newest and properties_of(message) is not NO_PROPERTIES:
            break
        data = publish_wire(_FIRST_BYTE, message.topic, fields, message.payload)
        if len(data) > largest:
            break
        room -= len(data)
        payload_bytes += len(message.payload)
        packets.append(data)
    if packets:
        runs.send(session, b"".join(packets), len(packets), payload_bytes)
    return place + len(packets)
