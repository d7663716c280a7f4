"""What happens to a PUBLISH from a client (MQTT 5, sections 3.3.4 and 4.3)."""

from typing import TYPE_CHECKING

from gateway.broker import fanout
from gateway.broker.access import may_publish
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.stage import session_of
from gateway.mqtt.packets import MQTT_5, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.where.message import Message
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

RETRY = (ReasonCode.QUOTA_EXCEEDED, ReasonCode.MESSAGE_RATE_TOO_HIGH)
"""Refusals that may be over when the message comes again."""


def handle_publish(broker: "Broker", client: Client, packet: Publish, instant: Instant) -> None:
    """Route a message and queue the answer that its QoS asks for."""
    session = session_of(client)
    broker.counters.add("publish/messages/received")
    if packet.qos == 2 and packet.packet_id in session.incoming:
        # [MQTT-4.3.3-10]: not delivered a second time. The first time may have been on another
        # connection, and what it gathered not be on disk yet
        client.send(PubRec(packet.packet_id), broker.durability.mark())
        return
    pending = broker.durability.pending_rows
    code = _publish(broker, session, packet, instant)
    if packet.qos == 0:
        return
    if code >= FAILURE and client.connection.version != MQTT_5:
        if code in RETRY:
            # MQTT 3.1.1 has no negative PUBACK; silence and a new connection make the client retry
            client.close()
            return
        code = ReasonCode.SUCCESS  # what will never be taken is acknowledged, or it comes for ever
    # the answer leaves after the rows that the message made (design, section 2)
    mark = broker.durability.mark() if broker.durability.pending_rows != pending else 0
    if packet.qos == 1:
        client.send(PubAck(packet.packet_id, code), mark)  # [MQTT-4.3.2-4]
    else:
        if code < FAILURE:
            session.incoming.add(packet.packet_id)
        client.send(PubRec(packet.packet_id, code), mark)  # [MQTT-4.3.3-8]


def handle_pubrel(_broker: "Broker", client: Client, packet: PubRel, _instant: Instant) -> None:
    """Forget the packet identifier of a QoS 2 message [MQTT-4.3.3-11], [MQTT-4.3.3-12]."""
    incoming = session_of(client).incoming
    known = packet.packet_id in incoming
    incoming.discard(packet.packet_id)
    client.send(
        PubComp(
            packet.packet_id,
            ReasonCode.SUCCESS if known else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND,
        )
    )


def _publish(broker: "Broker", session: Session, packet: Publish, instant: Instant) -> ReasonCode:
    if not may_publish(packet.topic):
        broker.counters.add("tidegate/clients/not_authorized")
        return ReasonCode.NOT_AUTHORIZED
    properties = packet.properties
    message = Message(
        packet.topic,
        packet.payload,
        packet.qos,
        packet.retain,
        client_id=session.client_id,
        username=session.username,
        received_at=instant.wall,
        arrived=instant.monotonic,
        content_type=properties.content_type,
        response_topic=properties.response_topic,
        correlation_data=properties.correlation_data,
        message_expiry=properties.message_expiry_interval,
        payload_format=properties.payload_format_indicator,
        user_properties=properties.user_properties,
    )
    return fanout.publish(broker, message, instant)
