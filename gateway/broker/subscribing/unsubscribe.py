"""What happens to an UNSUBSCRIBE (MQTT 5, section 3.10.4)."""

from typing import TYPE_CHECKING

from gateway.broker.client import Client, session_of
from gateway.broker.instant import Instant
from gateway.broker.pieces import Piece, Pieces
from gateway.mqtt.packets import UnsubAck, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def handle_unsubscribe(
    broker: "Broker", client: Client, packet: Unsubscribe, _instant: Instant
) -> Pieces:
    """Give up each topic filter, compared character by character [MQTT-3.10.4-1].

    None is if one of them is malformed.
    """
    session = session_of(client)
    piece = Piece()
    for topic_filter in packet.topic_filters:
        if piece.ends_with(topic_filter):
            yield None
    codes = []
    commit, gathered = 0, broker.gathered
    for topic_filter in packet.topic_filters:
        if piece.ends_with(topic_filter):
            commit = max(commit, broker.commit_since(gathered))
            yield None
            gathered = broker.gathered
        number = broker.router.find(session, topic_filter)
        if number is None:
            codes.append(ReasonCode.NO_SUBSCRIPTION_EXISTED)
        else:
            broker.router.discard(number)
            broker.replays.discard(session, topic_filter)
            session.journal.unsubscribe(topic_filter)
            codes.append(ReasonCode.SUCCESS)
    # [MQTT-3.10.4-4], [MQTT-3.10.4-6]
    commit = max(commit, broker.commit_since(gathered))
    client.send(UnsubAck(packet.packet_id, codes), commit)
