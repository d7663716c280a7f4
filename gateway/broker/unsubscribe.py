"""What happens to an UNSUBSCRIBE (MQTT 5, section 3.10.4)."""

from typing import TYPE_CHECKING

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.stage import session_of
from gateway.mqtt.errors import MqttError
from gateway.mqtt.packets import UnsubAck, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_topic_filter
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def handle_unsubscribe(
    broker: "Broker", client: Client, packet: Unsubscribe, _instant: Instant
) -> None:
    """Give up each topic filter, compared character by character [MQTT-3.10.4-1]."""
    session = session_of(client)
    codes = [_unsubscribe(broker, session, each) for each in packet.topic_filters]
    client.send(UnsubAck(packet.packet_id, codes))  # [MQTT-3.10.4-4], [MQTT-3.10.4-6]


def _unsubscribe(broker: "Broker", session: Session, topic_filter: str) -> ReasonCode:
    number = session.subscriptions.pop(topic_filter, None)
    if number is not None:
        broker.router.discard(number)
        return ReasonCode.SUCCESS
    try:
        check_topic_filter(topic_filter)
    except MqttError as error:  # nobody can have subscribed to it
        return error.reason_code
    return ReasonCode.NO_SUBSCRIPTION_EXISTED
