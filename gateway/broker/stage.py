"""The stage a connection has reached: before its CONNECT was accepted, or after."""

from gateway.broker.client import Client
from gateway.mqtt.errors import ProtocolError
from gateway.session.session import Session


def session_of(client: Client) -> Session:
    """Return the session of a client; raise ProtocolError before CONNECT [MQTT-3.1.0-1]."""
    if client.session is None:
        raise ProtocolError("the first packet is not CONNECT")
    return client.session
