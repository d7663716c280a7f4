"""What happens to an UNSUBSCRIBE (MQTT 5, section 3.10.4)."""

from gateway.broker.client import Client, session_of
from gateway.broker.instant import Instant
from gateway.broker.pieces import Piece, Pieces
from gateway.broker.state import State
from gateway.mqtt.packets import UnsubAck, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode


def handle_unsubscribe(
    state: State, client: Client, packet: Unsubscribe, _instant: Instant
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
    commit, gathered = 0, state.gathered
    for topic_filter in packet.topic_filters:
        if piece.ends_with(topic_filter):
            commit = max(commit, state.commit_since(gathered))
            yield None
            gathered = state.gathered
        number = state.router.find(session, topic_filter)
        if number is None:
            codes.append(ReasonCode.NO_SUBSCRIPTION_EXISTED)
        else:
            state.router.discard(number)
            state.replays.discard(session, topic_filter)
            session.journal.unsubscribe(topic_filter)
            codes.append(ReasonCode.SUCCESS)
    # [MQTT-3.10.4-4], [MQTT-3.10.4-6]
    commit = max(commit, state.commit_since(gathered))
    client.send(UnsubAck(packet.packet_id, codes), commit)
