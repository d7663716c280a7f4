"""What happens to a CONNECT (MQTT 5, section 3.1.4)."""

from gateway.broker.client import Client
from gateway.broker.connecting import enhanced_authentication
from gateway.broker.connecting.admission import greet
from gateway.broker.connecting.connack import admit, refuse
from gateway.broker.connecting.login import log_in
from gateway.broker.instant import Instant
from gateway.broker.pieces import Pieces
from gateway.broker.state import State
from gateway.mqtt.connection import NO_LIMIT
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import Connect


def handle_connect(
    state: State, client: Client, packet: Connect, instant: Instant
) -> Pieces | None:
    """Find out who the client is, then accept or refuse it.

    Returns what stands for a decision that is still to come.
    """
    if client.session is not None or client.authentication is not None:
        raise ProtocolError("a second CONNECT")  # [MQTT-3.1.0-2]
    state.connects += 1
    client.problem_information = packet.properties.request_problem_information != 0
    client.connection.maximum_packet_size = packet.properties.maximum_packet_size or NO_LIMIT
    refusal = greet(client, packet)
    method = client.info.authentication_methods.get(packet.properties.authentication_method)
    if refusal is None and method is not None:
        enhanced_authentication.begin(state, client, method, packet, instant)
        return None
    if refusal is not None:
        refuse(state.counters, client, packet, refusal)
    elif client.info.username is not None:
        packet.username = client.info.username
        admit(state, client, packet, instant)
    else:
        log_in(state, client, packet, instant)
    return client.pieces
