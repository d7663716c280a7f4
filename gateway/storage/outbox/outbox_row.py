"""One message of the outbox, and its form as a row of SQLite."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from gateway.mqtt.message import Message
from gateway.mqtt.output import Barrier
from gateway.storage.engine.message_columns import (
    MESSAGE_COLUMNS,
    PROPERTY_COLUMNS,
    fields_of,
    to_fields,
    to_values,
)

COLUMNS = ("id", "size", "epoch", "stream", "seq", "lane", *MESSAGE_COLUMNS)
"""The columns of `outbox` and `rejected` that hold an OutboxRow, in the order of `to_columns`."""

SIZE_INDEX = COLUMNS.index("size")
"""Where `size` stands in COLUMNS."""

_identity = attrgetter(*COLUMNS[: -len(MESSAGE_COLUMNS)])
_message = attrgetter(*MESSAGE_COLUMNS)


class OutboxRow:
    """A message with the number that it was given; absent optional fields are None.

    (`epoch`, `stream`, `seq`) with the gateway's id name it for ever. `time` is when the gateway
    accepted it (ms since 1970); `qos` and `retain` are the publisher's. `id` and `size` (bytes,
    as the outbox counts them) are given by `Outbox.add`; `left` is True once it was removed.
    Uplinks are bits (`UplinkBits`): `uplinks` wait for it, it is `taken` by those that it is on
    its way to, and `ending` are those for which it ends now.
    `barrier` is what the publisher's answer waits for until the fleet has acknowledged the message.
    A live row that `awaits_commit` may not be sent before it is on disk.
    `stepped` is how many ms the wall clock was set forward since `time`, as `Outbox.take` found.
    """

    __slots__ = (
        "__weakref__",
        "awaits_commit",
        "barrier",
        "client_id",
        "content_type",
        "correlation_data",
        "ending",
        "epoch",
        "id",
        "lane",
        "left",
        "message_expiry",
        "payload",
        "payload_format",
        "qos",
        "response_topic",
        "retain",
        "seq",
        "size",
        "stepped",
        "stream",
        "taken",
        "time",
        "topic",
        "uplinks",
        "user_properties",
        "username",
    )

    def __init__(
        self,
        epoch: str,
        stream: str,
        seq: int,
        lane: str,
        topic: str,
        payload: bytes,
        qos: int = 1,
        retain: bool = False,
        time: int = 0,
        client_id: str | None = None,
        username: str | None = None,
        content_type: str | None = None,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        message_expiry: int | None = None,
        payload_format: int | None = None,
        user_properties: tuple[tuple[str, str], ...] = (),
        identifier: int = 0,
        size: int = 0,
        uplinks: int = 1,
    ) -> None:
        self.epoch = epoch
        self.stream = stream
        self.seq = seq
        self.lane = lane
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.time = time
        self.client_id = client_id
        self.username = username
        self.content_type = content_type
        self.response_topic = response_topic
        self.correlation_data = correlation_data
        self.message_expiry = message_expiry
        self.payload_format = payload_format
        self.user_properties = user_properties
        self.id = identifier
        self.size = size
        self.left = False
        self.awaits_commit = False
        self.uplinks = uplinks
        self.taken = 0
        self.ending = 0
        self.stepped = 0
        self.barrier: Barrier | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutboxRow) and to_columns(self) == to_columns(other)

    def __hash__(self) -> int:
        return hash((self.epoch, self.stream, self.seq))

    def __repr__(self) -> str:
        return f"OutboxRow{to_columns(self)}"


def row_of_message(message: Message, epoch: str, stream: str, seq: int, lane: str) -> OutboxRow:
    """Return the row that keeps all of `message` under the number (epoch, stream, seq)."""
    return OutboxRow(epoch, stream, seq, lane, *fields_of(message))


def to_columns(row: OutboxRow) -> tuple[object, ...]:
    """Return the values of COLUMNS."""
    return (*_identity(row), *to_values(_message(row)))


def from_columns(values: Sequence[Any]) -> OutboxRow:
    """Return the row that `to_columns` made `values` of."""
    identifier, size, epoch, stream, seq, lane, *message = values
    row = OutboxRow(epoch, stream, seq, lane, *to_fields(message))
    row.id, row.size = identifier, size
    return row


def message_of_row(row: OutboxRow) -> Message:
    """Return the message that `row_of_message` made the row of."""
    return message_of(_message(row))


def message_of(fields: tuple[Any, ...]) -> Message:
    """Return the message with these fields, in the order of MESSAGE_COLUMNS."""
    topic, payload, qos, retain, time, client_id, username, *properties = fields
    return Message(
        topic,
        payload,
        qos,
        retain,
        received_at=time,
        client_id=client_id,
        username=username,
        **dict(zip(PROPERTY_COLUMNS, properties, strict=True)),
    )


def has_expired(row: OutboxRow, now: int) -> bool:
    """Return whether the message expiry of `row` has passed at `now` (ms since 1970)."""
    return row.message_expiry is not None and row.time + 1000 * row.message_expiry <= now
