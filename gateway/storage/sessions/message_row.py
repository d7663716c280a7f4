"""A message as a row of SQLite, in the tables of sessions and of retained messages."""

import json
from typing import Any

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import make_publication
from gateway.session.kept import seconds_since
from gateway.storage.engine.connection import Row

PROPERTY_COLUMNS = (
    "content_type",
    "response_topic",
    "correlation_data",
    "message_expiry",
    "payload_format",
    "user_properties",
)
"""What a publisher says of a message beside it, in the order of `property_values`."""

COLUMNS = (
    "topic",
    "payload",
    "qos",
    "retain",
    "received_at",
    "client_id",
    "username",
    *PROPERTY_COLUMNS,
)
"""The columns of a message, in the order of `to_row`."""


PLAIN_COLUMNS = COLUMNS[: -len(PROPERTY_COLUMNS)]
"""Those of a message about which its publisher says nothing beside it: the others are NULL."""


BATCH_COLUMNS = (*PLAIN_COLUMNS, "message_expiry", "version")
"""Those of a publication of several messages: their packets are the payload."""

NO_VALUES = (None,) * len(PROPERTY_COLUMNS)
"""The values of PROPERTY_COLUMNS where a publisher says nothing beside the message."""


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
    """Return the values of COLUMNS of a single message; user properties as JSON."""
    return (*to_plain_row(publication), *property_values(publication.properties.fields))


def batch_to_row(publication: Publication) -> Row:
    """Return the values of BATCH_COLUMNS."""
    return (
        publication.topic,
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
    """Return the bytes of texts and blobs among PLAIN_COLUMNS, as `Writer.add_rows` wants them."""
    names = len(publication.client_id or "") + len(publication.username or "")
    return len(publication.topic) + publication.packets.payload_bytes(0, 1) + names


def from_row(values: tuple[Any, ...], monotonic: float, wall: int) -> Publication:
    """Return the single message that `to_row` made `values` of.

    Its expiry goes on from when it was accepted: `monotonic` (seconds) and `wall` (ms since 1970)
    are now. Raises ValueError for what is no such row.
    """
    topic, payload, qos, retain, received_at, client_id, username, *rest = values
    publication = make_publication(
        topic, payload, check_qos(qos), bool(retain), property_fields(tuple(rest))
    )
    publication.client_id = client_id
    publication.username = username
    publication.received_at = received_at
    publication.arrived = monotonic - seconds_since(received_at, wall)
    return publication


def property_fields(values: tuple[Any, ...]) -> Properties:
    """Return the properties that `property_values` made `values` of."""
    if values == NO_VALUES:
        return NO_PROPERTIES
    content_type, response_topic, correlation_data, expiry, payload_format, pairs = values
    return Properties(
        payload_format_indicator=payload_format,
        message_expiry_interval=expiry,
        content_type=content_type,
        response_topic=response_topic,
        correlation_data=correlation_data,
        user_properties=text_to_pairs(pairs),
    )


def property_values(properties: Properties) -> Row:
    """Return the values of PROPERTY_COLUMNS."""
    return (
        properties.content_type,
        properties.response_topic,
        properties.correlation_data,
        properties.message_expiry_interval,
        properties.payload_format_indicator,
        pairs_to_text(properties.user_properties),
    )


def check_qos(qos: int) -> int:
    """Return the QoS; raise ValueError if it is none."""
    if qos not in (0, 1, 2):
        raise ValueError(f"QoS {qos}")
    return qos


def pairs_to_text(pairs: tuple[tuple[str, str], ...]) -> str | None:
    """Return user properties as JSON, None where there are none."""
    return json.dumps(pairs, separators=(",", ":"), ensure_ascii=False) if pairs else None


def text_to_pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return what `pairs_to_text` made the text of; raise ValueError for any other."""
    if text is None:
        return ()
    return tuple((name, value) for name, value in json.loads(text))
