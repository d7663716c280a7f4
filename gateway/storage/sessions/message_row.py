"""A publication as a row of SQLite, in the tables of sessions and of retained messages."""

from typing import Any

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import make_publication
from gateway.session.restored import seconds_since
from gateway.storage.engine.connection import Row
from gateway.storage.engine.message_columns import PLAIN_COLUMNS, property_fields, property_values

BATCH_COLUMNS = (*PLAIN_COLUMNS, "message_expiry", "version")
"""Those of a publication of several messages: their packets are the payload."""


def to_plain_row(publication: Publication) -> Row:
    """Return the values of PLAIN_COLUMNS of a single message."""
    return (
        publication.topic,
        publication.packets.one(0),
        publication.qos,
        int(publication.retain),
        publication.received_at or 0,
        publication.client_id,
        publication.username,
    )


def to_row(publication: Publication) -> Row:
    """Return the values of MESSAGE_COLUMNS of a single message."""
    return (*to_plain_row(publication), *property_values(publication.properties.fields))


def batch_to_row(publication: Publication) -> Row:
    """Return the values of BATCH_COLUMNS; the topic is empty if the packets' differ."""
    return (
        "" if publication.mixed else publication.topic,
        publication.packets.data,
        publication.qos,
        int(publication.retain),
        publication.received_at or 0,
        publication.client_id,
        publication.username,
        publication.properties.expiry,
        MQTT_5 if publication.mqtt5 else MQTT_3_1_1,
    )


def text_size(publication: Publication) -> int:
    """Return the bytes of texts and blobs among PLAIN_COLUMNS, as `Writer.add_rows` needs them."""
    names = len(publication.client_id or "") + len(publication.username or "")
    return len(publication.topic) + publication.packets.payload_bytes(0, 1) + names


def from_row(values: tuple[Any, ...], monotonic: float, wall: int) -> Publication:
    """Return the single message of values from `to_row`.

    Its expiry counts from when it was accepted: `monotonic` (seconds) and `wall` (ms since 1970)
    are now. Raises ValueError for an invalid row.
    """
    topic, payload, qos, retain, time, client_id, username, *rest = values
    publication = make_publication(
        topic, payload, check_qos(qos), bool(retain), property_fields(tuple(rest))
    )
    publication.client_id = client_id
    publication.username = username
    publication.received_at = time
    publication.arrived = monotonic - seconds_since(time, wall)
    return publication


def check_qos(qos: int) -> int:
    """Return the QoS; raise ValueError if it is invalid."""
    if qos not in (0, 1, 2):
        raise ValueError(f"QoS {qos}")
    return qos
