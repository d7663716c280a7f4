"""The columns of a message, and its values in them, for every table that stores it."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.mqtt.message import Message
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.storage.engine.connection import Row

PROPERTY_COLUMNS = (
    "content_type",
    "response_topic",
    "correlation_data",
    "message_expiry",
    "payload_format",
    "user_properties",
)
"""The publisher's properties of a message."""

PLAIN_COLUMNS = ("topic", "payload", "qos", "retain", "time", "client_id", "username")
"""The columns of a message without properties: all others are NULL."""

MESSAGE_COLUMNS = (*PLAIN_COLUMNS, *PROPERTY_COLUMNS)
"""All of them. `time` is when the gateway accepted the message (ms since 1970)."""

NO_VALUES = (None,) * len(PROPERTY_COLUMNS)
"""The values of PROPERTY_COLUMNS for a message without properties."""


def message_values(message: Message) -> Row:
    """Return the values of MESSAGE_COLUMNS; user properties become JSON."""
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
        pairs_to_text(message.user_properties),
    )


def to_message(values: Sequence[Any]) -> Message:
    """Return the message of values from `message_values`."""
    topic, payload, qos, retain, time, client_id, username, *properties = values
    content_type, response_topic, correlation_data, expiry, payload_format, pairs = properties
    return Message(
        topic,
        payload,
        qos,
        retain != 0,
        client_id=client_id,
        username=username,
        received_at=time,
        content_type=content_type,
        response_topic=response_topic,
        correlation_data=correlation_data,
        message_expiry=expiry,
        payload_format=payload_format,
        user_properties=() if pairs is None else text_to_pairs(pairs),
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


def property_fields(values: tuple[Any, ...]) -> Properties:
    """Return the properties of values from `property_values`."""
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
    """Return user properties as JSON, None without any."""
    return json.dumps(pairs, separators=(",", ":"), ensure_ascii=False) if pairs else None


def text_to_pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a text from `pairs_to_text`; raise ValueError for any other."""
    if text is None:
        return ()
    return tuple((name, value) for name, value in json.loads(text))
