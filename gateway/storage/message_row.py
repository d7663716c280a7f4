"""A message as a row of SQLite, in the tables of sessions and of retained messages."""

import json
from typing import Any

from gateway.mqtt.message import Message as AcceptedMessage
from gateway.mqtt.plain_message import PlainMessage
from gateway.mqtt.properties import Properties
from gateway.routing.where.message import Message
from gateway.session.kept import seconds_since
from gateway.session.message_run import MessageRun
from gateway.storage.connection import Row

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


RUN_COLUMNS = (*PLAIN_COLUMNS, "version")
"""Those of messages of a run: their packets are the payload."""


def is_plain(message: AcceptedMessage) -> bool:
    """Return whether PLAIN_COLUMNS say all of the message."""
    return (
        message.content_type is None
        and message.response_topic is None
        and message.correlation_data is None
        and message.message_expiry is None
        and message.payload_format is None
        and not message.user_properties
    )


def to_plain_row(message: AcceptedMessage) -> Row:
    """Return the values of PLAIN_COLUMNS."""
    return (
        message.topic,
        message.payload,
        message.qos,
        message.retain,
        message.received_at or 0,
        message.client_id,
        message.username,
    )


def of_plain(message: PlainMessage) -> Row:
    """Return the values of PLAIN_COLUMNS of a message that has no others."""
    origin = message.origin
    return (
        message.topic,
        message.payload,
        origin.qos,
        True,
        origin.received_at,
        origin.client_id,
        origin.username,
    )


def run_to_row(run: MessageRun) -> Row:
    """Return the values of RUN_COLUMNS."""
    return (
        run.topic,
        run.data,
        run.qos,
        False,
        run.received_at,
        run.client_id,
        run.username,
        run.version,
    )


def text_size(message: AcceptedMessage | PlainMessage) -> int:
    """Return the bytes of texts and blobs among PLAIN_COLUMNS, as `Writer.add_rows` wants them."""
    names = len(message.client_id or "") + len(message.username or "")
    return len(message.topic) + len(message.payload) + names


def to_row(message: AcceptedMessage) -> Row:
    """Return the values of COLUMNS; user properties as JSON, None where there are none."""
    return (
        *to_plain_row(message),
        message.content_type,
        message.response_topic,
        message.correlation_data,
        message.message_expiry,
        message.payload_format,
        pairs_to_text(message.user_properties),
    )


def from_row(values: tuple[Any, ...], monotonic: float, wall: int) -> Message:
    """Return the message that `to_row` made `values` of.

    Its expiry goes on from when it was accepted: `monotonic` (seconds) and `wall` (ms since 1970)
    are now. Raises ValueError for what is no such row.
    """
    topic, payload, qos, retain, received_at, client_id, username, *rest = values
    content_type, response_topic, correlation_data, expiry, payload_format, pairs = rest
    return Message(
        topic,
        payload,
        check_qos(qos),
        bool(retain),
        client_id=client_id,
        username=username,
        received_at=received_at,
        arrived=monotonic - seconds_since(received_at, wall),
        content_type=content_type,
        response_topic=response_topic,
        correlation_data=correlation_data,
        message_expiry=expiry,
        payload_format=payload_format,
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
