"""Sessions of one client, and what they send it."""

from gateway.counters import Counters
from gateway.mqtt.codec.packet_codec import decode
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import MQTT_5, Packet, Publish
from gateway.mqtt.properties import Properties
from gateway.session.limits import SessionLimits
from gateway.session.session import Session
from tests.support.broker.publications import publish
from tests.support.frames import next_frame


def open_connection(version: int = MQTT_5) -> Connection:
    connection = Connection(NO_LIMIT)
    connection.version = version
    return connection


def persistent(limits: SessionLimits | None = None) -> Session:
    session = Session("c", Counters(), limits)
    session.expiry_interval = 60
    return session


def deliver(
    session: Session,
    *payloads: bytes,
    qos: int = 1,
    topic: str = "a",
    expiry: int | None = None,
    arrived: float = 0.0,
    now: float = 0.0,
    identifiers: tuple[int, ...] = (),
) -> None:
    """Hand messages over as one publication."""
    properties = Properties(message_expiry_interval=expiry)
    contents = payloads or (b"x",)
    publication = publish(contents, qos, topic=topic, properties=properties)
    publication.arrived = arrived
    session.accept(publication, 0, len(contents), qos, False, identifiers, now)


def packets(connection: Connection) -> list[Packet]:
    """Return what the connection has to send, and take it away."""
    framer = Framer(NO_LIMIT)
    framer.feed(bytes(connection.data_to_send(0) or b""))
    found = []
    while (frame := next_frame(framer)) is not None:
        found.append(decode(*frame, connection.version))
    return found


def sent(connection: Connection) -> list[Publish]:
    """Return the messages that it has to send, and take them away."""
    return [packet for packet in packets(connection) if isinstance(packet, Publish)]


def payloads(connection: Connection) -> list[bytes]:
    return [packet.payload for packet in sent(connection)]


def acknowledge(session: Session, *packet_ids: int) -> None:
    """Acknowledge these messages, each by itself."""
    for packet_id in packet_ids:
        assert session.finish((packet_id,), 0) == 1
        session.pump(0.0)
