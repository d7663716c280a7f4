"""The columns of a message, and its values in them, whichever table stores it."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.storage.engine.connection import Row

if TYPE_CHECKING:
    from gateway.mqtt.message import Message

PROPERTY_COLUMNS = (
    "content_type",
    "response_topic",
    "correlation_data",
    "message_expiry",
    "payload_format",
    "user_properties",
)
"""What a publisher says of a message beside it."""

PLAIN_COLUMNS = ("topic", "payload", "qos", "retain", "time", "client_id", "username")
"""Those of a message about which its publisher says nothing beside it: the others are NULL."""

MESSAGE_COLUMNS = (*PLAIN_COLUMNS, *PROPERTY_COLUMNS)
"""All of them. `time` is when the gateway accepted the message (ms since 1970)."""

NO_VALUES = (None,) * len(PROPERTY_COLUMNS)
"""The values of PROPERTY_COLUMNS where a publisher says nothing beside the message."""


def fields_of(message: "Message") -> tuple[Any, ...]:
    """Return what `to_values` takes: the fields in the order of MESSAGE_COLUMNS."""
    return (
        message.topic,
        message.payload,
        message.qos,
        message.retain,
        message.received_at or 0,
        message.client_id,
        message.username,
        message.content_type,
        message.response_topic,
        message.correlation_data,
        message.message_expiry,
        message.payload_format,
        message.user_properties,
    )


def to_values(fields: tuple[Any, ...]) -> Row:
    """Return the values of MESSAGE_COLUMNS; user properties become JSON."""
    return (*fields[:-1], pairs_to_text(fields[-1]))


def to_fields(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the fields that `to_values` made `values` of."""
    topic, payload, qos, retain, *others, pairs = values
    return (topic, payload, qos, retain != 0, *others, text_to_pairs(pairs))


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


def pairs_to_text(pairs: tuple[tuple[str, str], ...]) -> str | None:
    """Return user properties as JSON, None where there are none."""
    return json.dumps(pairs, separators=(",", ":"), ensure_ascii=False) if pairs else None


def text_to_pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return what `pairs_to_text` made the text of; raise ValueError for any other."""
    if text is None:
        return ()
    return tuple((name, value) for name, value in json.loads(text))
