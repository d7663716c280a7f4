"""What happens to a client's acknowledgements (MQTT 5, sections 4.3 and 4.4)."""

from typing import TYPE_CHECKING

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.stage import session_of
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import PubAck, PubComp, PubRec, PubRel
from gateway.mqtt.reason_codes import FAILURE, ReasonCode

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def handle_puback(_broker: "Broker", client: Client, packet: PubAck, instant: Instant) -> None:
    """Finish a QoS 1 delivery [MQTT-4.3.2-3]; whatever its code, it is not sent again."""
    session = session_of(client)
    message = session.inflight.find(packet.packet_id)
    if message is not None and message.delivery.qos == 1:
        session.finish(packet.packet_id, message, instant.monotonic)
    elif message is not None:
        raise ProtocolError(f"PUBACK for the QoS 2 message {packet.packet_id}")


def handle_pubrec(_broker: "Broker", client: Client, packet: PubRec, instant: Instant) -> None:
    """Answer the first acknowledgement of a QoS 2 delivery [MQTT-4.3.3-4], [MQTT-4.3.3-5].

    One that refuses the message ends the exchange, also of a message that is not known.
    """
    session = session_of(client)
    message = session.inflight.find(packet.packet_id)
    if message is None:
        if packet.reason_code < FAILURE:
            client.send(PubRel(packet.packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND))
    elif message.delivery.qos == 1:
        raise ProtocolError(f"PUBREC for the QoS 1 message {packet.packet_id}")
    elif packet.reason_code >= FAILURE:
        session.finish(packet.packet_id, message, instant.monotonic)
    else:
        client.send(PubRel(packet.packet_id), session.release(message))


def handle_pubcomp(_broker: "Broker", client: Client, packet: PubComp, instant: Instant) -> None:
    """Finish a QoS 2 delivery."""
    session = session_of(client)
    message = session.inflight.find(packet.packet_id)
    if message is not None and message.released:
        session.finish(packet.packet_id, message, instant.monotonic)
    elif message is not None:
        raise ProtocolError(f"PUBCOMP for {packet.packet_id} before its PUBREC")
