"""Sends a session many messages at once, which it alone is sent in this form."""

from collections.abc import Callable, Sequence

from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.fields import write_variable_byte_integer
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.plain_message import PlainMessage
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.publish_template import identifier_fields
from gateway.mqtt.publish_wire import append_publish
from gateway.session.delivery import Delivery
from gateway.session.session import Session
from gateway.session.templates import Templates, properties_of

_FIRST_BYTE = publish_first_byte(0, retain=True, dup=False)


def replay(
    session: Session,
    messages: Sequence[Message | PlainMessage],
    whole: Callable[[PlainMessage], Message],
    qos: int,
    subscription_identifiers: tuple[int, ...],
    now: float,
) -> None:
    """Send, queue or drop retained messages that the session has subscribed to with this QoS.

    RETAIN is set on what is sent because of a SUBSCRIBE [MQTT-3.3.1-8]. `whole` makes a message of
    what is not sent at once with others.
    """
    place = 0
    while place < len(messages):
        place = _send_many(session, messages, place, qos, subscription_identifiers)
        if place < len(messages):
            message = messages[place]
            if isinstance(message, PlainMessage):
                message = whole(message)
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
    messages: Sequence[Message | PlainMessage],
    place: int,
    qos: int,
    subscription_identifiers: tuple[int, ...],
) -> int:
    """Send QoS 0 messages from `place` on; return the place of the first that was not sent.

    It has properties, or another QoS, or is too large, or there is no more room before it.
    """
    connection = session.clear_connection()
    if connection is None or connection.outbound_aliases is not None:
        return place
    fields = b""
    if connection.version == MQTT_5:
        fields = identifier_fields(subscription_identifiers)
        fields = write_variable_byte_integer(len(fields)) + fields
    room = MAXIMUM_UNSENT - connection.output.size
    data = bytearray()
    begin, payload_bytes = place, 0
    while place < len(messages) and len(data) < room:
        message = messages[place]
        if not _is_simple(message, qos, connection.version):
            break
        start, payload = len(data), message.payload
        append_publish(data, _FIRST_BYTE, message.topic, fields, payload)
        if len(data) - start > connection.maximum_packet_size:
            del data[start:]
            break
        payload_bytes += len(payload)
        place += 1
    if place > begin:
        session.send_run(data, place - begin, payload_bytes)
    return place


def _is_simple(message: Message | PlainMessage, qos: int, version: int) -> bool:
    """Return whether a message goes out with QoS 0 and without properties of its own."""
    if isinstance(message, PlainMessage):
        return not qos or message.origin.qos == 0
    if qos and message.qos:
        return False
    return version < MQTT_5 or properties_of(message) is NO_PROPERTIES
