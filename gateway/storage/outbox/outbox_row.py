"""One message of the outbox, and its form as a row of SQLite."""

import json
from dataclasses import dataclass, field
from typing import Any

from gateway.routing.where.message import Message

COLUMNS = (
    "id",
    "size",
    "epoch",
    "stream",
    "seq",
    "lane",
    "time",
    "topic",
    "payload",
    "qos",
    "retain",
    "content_type",
    "response_topic",
    "correlation_data",
    "message_expiry",
    "payload_format",
    "user_properties",
    "client_id",
    "username",
)
"""The columns of `outbox`, and most of those of `rejected`, in the order of `to_columns`."""

SIZE_INDEX = COLUMNS.index("size")
"""Where `size` stands in COLUMNS."""


@dataclass(slots=True, weakref_slot=True)
class OutboxRow:
    """A message with the number that it was given; absent optional fields are None.

    (`epoch`, `stream`, `seq`) with the gateway's id name it for ever. `time` is when the gateway
    accepted it (ms since 1970); `qos` and `retain` are the publisher's. `id` and `size` (bytes,
    as the outbox counts them) are given by `Outbox.add`; `left` is True once it was removed,
    `taken` while it is on its way to the fleet.
    `stepped` is how many ms the wall clock was set forward since `time`, as `Outbox.take` found.
    """

    epoch: str
    stream: str
    seq: int
    lane: str
    time: int
    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    message_expiry: int | None = None
    payload_format: int | None = None
    user_properties: tuple[tuple[str, str], ...] = ()
    client_id: str | None = None
    username: str | None = None
    id: int = 0
    size: int = 0
    left: bool = field(default=False, compare=False)
    taken: bool = field(default=False, compare=False)
    stepped: int = field(default=0, compare=False)


def row_of_message(message: Message, epoch: str, stream: str, seq: int, lane: str) -> OutboxRow:
    """Return the row that keeps all of `message` under the number (epoch, stream, seq)."""
    return OutboxRow(
        epoch=epoch,
        stream=stream,
        seq=seq,
        lane=lane,
        time=message.received_at or 0,
        topic=message.topic,
        payload=message.payload,
        qos=message.qos,
        retain=message.retain,
        content_type=message.content_type,
        response_topic=message.response_topic,
        correlation_data=message.correlation_data,
        message_expiry=message.message_expiry,
        payload_format=message.payload_format,
        user_properties=message.user_properties,
        client_id=message.client_id,
        username=message.username,
    )


def to_columns(row: OutboxRow) -> tuple[object, ...]:
    """Return the values of COLUMNS; user properties as JSON, None where there are none."""
    pairs = row.user_properties
    return (
        row.id,
        row.size,
        row.epoch,
        row.stream,
        row.seq,
        row.lane,
        row.time,
        row.topic,
        row.payload,
        row.qos,
        row.retain,
        row.content_type,
        row.response_topic,
        row.correlation_data,
        row.message_expiry,
        row.payload_format,
        json.dumps(pairs, separators=(",", ":"), ensure_ascii=False) if pairs else None,
        row.client_id,
        row.username,
    )


def from_columns(values: tuple[Any, ...]) -> OutboxRow:
    """Return the row that `to_columns` made `values` of."""
    identifier, size, epoch, stream, seq, lane, time, topic, payload, qos, retain, *rest = values
    content_type, response_topic, correlation_data, expiry, payload_format, pairs, *sender = rest
    return OutboxRow(  # by place: a drain makes thousands a second
        epoch,
        stream,
        seq,
        lane,
        time,
        topic,
        payload,
        qos,
        bool(retain),
        content_type,
        response_topic,
        correlation_data,
        expiry,
        payload_format,
        () if pairs is None else tuple((name, value) for name, value in json.loads(pairs)),
        sender[0],
        sender[1],
        identifier,
        size,
    )


def has_expired(row: OutboxRow, now: int) -> bool:
    """Return whether the message expiry of `row` has passed at `now` (ms since 1970)."""
    return row.message_expiry is not None and row.time + 1000 * row.message_expiry <= now
