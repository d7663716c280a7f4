"""Handles DISCONNECT and PINGREQ (MQTT 5, sections 3.14 and 3.12)."""

from gateway.broker import sessions
from gateway.broker.client import Client, session_of
from gateway.broker.connecting.admission import longest_expiry
from gateway.broker.instant import Instant
from gateway.broker.state import State
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import Disconnect, Packet, PingResp
from gateway.mqtt.reason_codes import ReasonCode


def handle_disconnect(state: State, client: Client, packet: Disconnect, _instant: Instant) -> None:
    """End the connection at the client's request; its will is dropped [MQTT-3.14.4-3]."""
    if client.session is None and client.authentication is not None:
        client.close()  # its authentication was not finished [MQTT-3.1.2-30]
        return
    session = session_of(client)
    interval = packet.properties.session_expiry_interval
    if interval is not None:
        interval = min(interval, longest_expiry(state.settings, client, session.username))
        if interval and not session.persistent:
            # [MQTT-3.14.2-2] with section 3.14.2.2.2
            raise ProtocolError("Session Expiry Interval was 0 at CONNECT and cannot rise")
        sessions.set_expiry(state, session, interval)
    if packet.reason_code == ReasonCode.SUCCESS:
        sessions.set_will(state, session, None)
    client.sent_disconnect = True
    client.close()


def handle_pingreq(_state: State, client: Client, _packet: Packet, _instant: Instant) -> None:
    """Answer [MQTT-3.12.4-1]."""
    session_of(client)
    client.send(PingResp())
