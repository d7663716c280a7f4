"""One message of the outbox: its columns in SQLite, its size there, and its outcome."""

from collections.abc import Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Any

from gateway.mqtt.message import Message
from gateway.mqtt.output import Barrier
from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS, pairs_to_text, to_message

LIVE = "live"
"""The lane of messages accepted while the link is up: sent first."""

BACKLOG = "backlog"
"""The lane of messages that waited for the link, or are always sent after live messages."""

RECALL = "recall"
"""The lane of messages that the fleet has requested again: sent last, and not in the ledger."""

COLUMNS = ("id", "size", "epoch", "stream", "seq", "lane", *MESSAGE_COLUMNS)
"""The columns of `outbox` and `rejected` that hold an OutboxRow, in the order of `to_columns`."""

SIZE_INDEX = COLUMNS.index("size")
"""The index of `size` in COLUMNS."""

# Bytes of a row in the file: the numbers are those of "Database File Format"
# (sqlite.org/fileformat2.html, section 1.6) for the gateway's pages in an auto-vacuum
# database.

LEAF = PAGE_BYTES - 8
"""Bytes of a leaf page after its header."""

LARGEST_LOCAL = PAGE_BYTES - 35
"""Bytes of the largest record that has no overflow page."""

SMALLEST_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
"""The least bytes of a larger record that stay in the leaf."""

OVERFLOW = PAGE_BYTES - 4
"""Bytes of a record that an overflow page holds."""

RECORD_OVERHEAD = 42
"""Bytes of a record beside its texts and blobs: header, row id, and the integers."""

CELL_OVERHEAD = 8
"""Bytes of a leaf beside the record: its pointer and length, the row id, an overflow page."""

PAIR_OVERHEAD = 7
"""Bytes that JSON adds to the name and value of a user property."""

TREE_SHARE = 32
"""One page of so many is above the leaves, or a pointer map."""

INDEX_ENTRY = 16
"""Bytes of an entry of the index of streams without the stream's name, and of one of the index of
expiry."""

_BESIDE = {"time": "time", "message_expiry": "message_expiry"}
"""The columns of a message that the row itself has."""

_values = attrgetter(
    *COLUMNS[: -len(MESSAGE_COLUMNS)],
    *(_BESIDE.get(column, f"message.{column}") for column in MESSAGE_COLUMNS),
)


class Outcome(StrEnum):
    """The outcome of a numbered message, in the words of the ledger that the fleet receives.

    The reason that accompanies each is beside it. A message that still waits in the outbox has none
    yet.
    """

    DELIVERED = "delivered"  # the fleet has it
    FILTERED = "filtered"  # the rule that was evaluated last
    EXPIRED = "expired"  # "" for its own Message Expiry Interval, or the bound in age
    EVICTED = "evicted"  # the policy that evicted it, or `latest`
    REJECTED = "rejected"  # the reason code of the fleet's broker, as 0x99
    LOST = "lost"  # the cause: a damaged database


class OutboxRow:
    """A message with its number.

    (`epoch`, `stream`, `seq`) with the gateway's id identify it for ever. `time` is when the
    gateway accepted it (ms since 1970), and `message_expiry` (seconds or None) its expiry in the
    outbox, which may differ from the publisher's. `id` and `size` (bytes, as the outbox counts
    them) are set by `Outbox.add`; `deleted` is True once it was removed. Uplinks are bits
    (`UplinkBits`): `uplinks` wait for it, it is `claimed` by those that are sending it, and
    `ending` are those for which it ends now. `stepped` are the ms by which the clock was set
    forward since. `awaits_commit` means that it is not sent before it is on disk; `barrier` lets
    its publisher's answer be sent without the disk, once the fleet has it. An unwritten row is
    written when it is `due`, in monotonic seconds.
    """

    __slots__ = (
        "__weakref__",
        "awaits_commit",
        "barrier",
        "claimed",
        "deleted",
        "due",
        "ending",
        "epoch",
        "id",
        "lane",
        "message",
        "message_expiry",
        "seq",
        "size",
        "stepped",
        "stream",
        "time",
        "uplinks",
    )

    def __init__(self, message: Message, epoch: str, stream: str, seq: int, lane: str) -> None:
        self.message = message
        self.epoch = epoch
        self.stream = stream
        self.seq = seq
        self.lane = lane
        self.time = message.received_at or 0
        self.message_expiry = message.message_expiry
        self.id = self.size = 0
        self.deleted = self.awaits_commit = False
        self.uplinks = 1
        self.claimed = self.ending = self.stepped = 0
        self.due = 0.0
        self.barrier: Barrier | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutboxRow) and to_columns(self) == to_columns(other)

    def __hash__(self) -> int:
        return hash((self.epoch, self.stream, self.seq))

    def __repr__(self) -> str:
        return f"OutboxRow{to_columns(self)}"


def to_columns(row: OutboxRow) -> tuple[object, ...]:
    """Return the values of COLUMNS."""
    *values, pairs = _values(row)
    return (*values, pairs_to_text(pairs) if pairs else None)


def from_columns(values: Sequence[Any]) -> OutboxRow:
    """Return the row of values from `to_columns`."""
    identifier, size, epoch, stream, seq, lane, *fields = values
    row = OutboxRow(to_message(fields), epoch, stream, seq, lane)
    row.id, row.size = identifier, size
    return row


def summary_of(row: OutboxRow) -> OutboxRow:
    """Return the row without the publisher's content."""
    message = Message(row.message.topic, received_at=row.time)
    found = OutboxRow(message, row.epoch, row.stream, row.seq, row.lane)
    found.id, found.size, found.uplinks = row.id, row.size, row.uplinks
    return found


def row_size(row: OutboxRow) -> int:
    """Return the bytes of `row` in the file, its part of half empty pages included.

    Rows that are deleted in another order than they were added leave gaps until their neighbours
    are deleted too. SQLite merges a page with its neighbours when two thirds of it are empty.
    """
    message, record = row.message, RECORD_OVERHEAD
    record += len(message.payload) + len(row.epoch) + len(row.stream) + len(row.lane)
    text = message.topic + (message.client_id or "") + (message.username or "")
    if message.content_type is not None or message.response_topic is not None:
        text += (message.content_type or "") + (message.response_topic or "")
    record += len(text) if text.isascii() else len(text.encode())
    if message.correlation_data:
        record += len(message.correlation_data)
    for name, value in message.user_properties:
        record += PAIR_OVERHEAD + len(name.encode()) + len(value.encode())
    overflow = 0
    if record > LARGEST_LOCAL:
        local = SMALLEST_LOCAL + (record - SMALLEST_LOCAL) % OVERFLOW
        if local > LARGEST_LOCAL:
            local = SMALLEST_LOCAL
        overflow = PAGE_BYTES * -(-(record - local) // OVERFLOW)
        record = local
    size = PAGE_BYTES // (LEAF // (record + CELL_OVERHEAD) or 1) + overflow  # its share of a leaf
    if row.message_expiry is not None:
        size += INDEX_ENTRY
    return size + size // TREE_SHARE + INDEX_ENTRY + len(row.stream)


def has_expired(row: OutboxRow, now: int) -> bool:
    """Return whether the message expiry of `row` has passed at `now` (ms since 1970)."""
    return row.message_expiry is not None and row.time + 1000 * row.message_expiry <= now
