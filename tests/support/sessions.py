"""Sessions of one client, and what they send it."""

from gateway.counters import Counters
from gateway.mqtt.connection import Connection
from gateway.mqtt.decode import decode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import MQTT_5, Packet
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery
from gateway.session.session import Session
from gateway.session.templates import Templates


def open_connection(version: int = MQTT_5) -> Connection:
    connection = Connection(1_024)
    connection.version = version
    return connection


def persistent() -> Session:
    session = Session("c", Counters())
    session.expiry_interval = 60
    return session


def deliver(session: Session, payload: bytes = b"x", qos: int = 1, **fields: object) -> None:
    message = Message("a", payload, qos, **fields)  # type: ignore[arg-type]  # by name
    session.deliver(Delivery(message, qos), Templates(message), 0.0)


def packets(connection: Connection) -> list[Packet]:
    """Return what the connection has to send, and take it away."""
    framer = Framer(0xFFFFFFFF)
    framer.feed(bytes(connection.data_to_send(0) or b""))
    found = []
    while (frame := framer.next_frame()) is not None:
        found.append(decode(*frame, MQTT_5))
    return found
