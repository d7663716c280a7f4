"""Publications as they come from a client."""

from collections.abc import Iterable

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import make_publication


def packets(
    payloads: Iterable[bytes],
    qos: int = 1,
    version: int = MQTT_5,
    *,
    topic: str = "a/b",
    retain: bool = False,
    first: int = 1,
    properties: Properties = NO_PROPERTIES,
) -> bytes:
    """Return PUBLISH packets of one topic, with packet identifiers from `first` on."""
    return b"".join(
        encode(
            Publish(topic, payload, qos, retain, False, number if qos else 0, properties), version
        )
        for number, payload in enumerate(payloads, first)
    )


def received(data: bytes, version: int = MQTT_5) -> Publication:
    """Return the publication that the first of these packets, and those alike, become."""
    connection = Connection(NO_LIMIT)
    connection.version = version
    connection.framer.feed(data)
    assert connection.framer.next_frame(connection.version)
    publication = connection.publication()
    connection.extend(publication, len(data), len(data))
    publication.topic = publication.topic_name[2:].decode()
    return publication


def publish(payloads: Iterable[bytes], qos: int = 1, **fields: object) -> Publication:
    """Return one publication of these payloads; `fields` are those of `packets`."""
    contents = [*payloads]
    data = packets(contents, qos, **fields)  # type: ignore[arg-type]  # by name
    version = fields.get("version", MQTT_5)
    assert isinstance(version, int)
    publication = received(data, version)
    assert publication.count == len(contents)
    return publication


def payloads(publication: Publication) -> list[bytes]:
    """Return the payload of each message."""
    return [publication.packets.one(number) for number in range(publication.count)]


def retained(
    topic: str, payload: bytes = b"", expiry: int | None = None, arrived: float = 0.0
) -> Publication:
    """Return a message to keep for its topic."""
    properties = Properties(message_expiry_interval=expiry) if expiry is not None else NO_PROPERTIES
    publication = make_publication(topic, payload, 0, retain=True, fields=properties)
    publication.arrived = arrived
    return publication
