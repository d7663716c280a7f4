"""Reads the outcome of a message, or where it waits, from the database."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.stored_batch import stored_publication
from gateway.storage.outbox.row import COLUMNS, OutboxRow, from_columns
from gateway.storage.sessions.delivery_row import gone_bits

Number = tuple[str, str, int]
"""Epoch, stream and number."""

_WAITING = f"SELECT {', '.join(COLUMNS)} FROM outbox WHERE epoch = ? AND stream = ? AND seq = ?"  # noqa: S608 - our own names
_UPLINKS = "SELECT uplinks FROM outbox WHERE epoch = ? AND stream = ? AND seq = ?"
_CAUSE = "coalesce(cause, printf('0x%02X', code))", "printf('0x%02X', code)"
_REJECTED = tuple(
    f"SELECT {cause} FROM rejected WHERE epoch = ? AND stream = ? AND seq = ?"  # noqa: S608 - ours
    for cause in _CAUSE
)
"""The second is for a database without causes."""

_LEDGER = (
    "SELECT uplink, outcome, reason FROM ledger"
    " WHERE epoch = ? AND stream = ? AND first <= ? AND last >= ? ORDER BY uplink"
)
_SESSION = "SELECT id FROM session WHERE client_id = ?"
_SINGLY = (
    "SELECT packet_id, released FROM delivery WHERE session = ? AND message IN"
    " (SELECT id FROM message WHERE topic = ? AND time = ? AND payload = ?)"
)
_IN_BATCHES = (
    "SELECT packet_id, released, topic, m.payload, version, gone FROM delivery"
    " JOIN message AS m ON m.id = message"
    " WHERE session = ? AND topic IN (?, '') AND time = ? AND version IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Undelivered:
    """An undelivered message of a stored session; `packet_id` is None while it is queued."""

    packet_id: int | None
    released: bool


class OutcomeReader:
    """Queries the tables; a table that an older database lacks counts as empty."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def waiting(self, number: Number) -> OutboxRow | None:
        """Return the row of the outbox, None if the message is not in it."""
        found = self._rows(_WAITING, number)
        return from_columns(found[0]) if found else None

    def rejection(self, number: Number) -> str | None:
        """Return why the fleet rejected the message, None if it did not."""
        for statement in _REJECTED:
            if found := self._rows(statement, number):
                return str(found[0][0])
        return None

    def ledger(self, number: Number) -> list[tuple[str, str, str]]:
        """Return uplink, outcome and reason, none if the ledger no longer has the number."""
        return self._rows(_LEDGER, (*number, number[2]))

    def uplinks(self, number: Number) -> str:
        """Return the names of the uplinks that the message waits for, "" if there is only one."""
        found = self._rows(_UPLINKS, number)
        return ", ".join(str(found[0][0] or "").strip(",").split(",")) if found else ""

    def undelivered(self, client_id: str, message: Message) -> Undelivered | None:
        """Return a stored session's undelivered message, None if it has none like it (any more)."""
        sessions = self._rows(_SESSION, (client_id,))
        if not sessions:
            return None
        of_message = (message.topic, message.received_at, message.payload)
        found = self._rows(_SINGLY, (sessions[0][0], *of_message))
        if found:
            return Undelivered(found[0][0] or None, bool(found[0][1]))
        for values in self._rows(_IN_BATCHES, (sessions[0][0], *of_message[:2])):
            undelivered = _undelivered_of(message, *values)
            if undelivered is not None:
                return undelivered
        return None

    def has_session(self, client_id: str) -> bool:
        """Return whether the client's session is stored."""
        return bool(self._rows(_SESSION, (client_id,)))

    def _rows(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such" in str(error):
                return []
            raise


def _undelivered_of(
    message: Message,
    last_id: int,
    released: int,
    topic: str,
    packets: bytes,
    version: int,
    gone: bytes | None,
) -> Undelivered | None:
    """Return the message if it is among the undelivered ones of a batch."""
    try:
        publication = stored_publication(packets, topic, mqtt5=version == MQTT_5)
    except ValueError:
        return None
    bits, count = gone_bits(gone), publication.count
    for number in range(count):
        sent = publication.topic_of(number), publication.packets.one(number)
        if not bits >> number & 1 and sent == (message.topic, message.payload):
            packet_id = last_id - (count - 1 - number) if last_id else None
            return Undelivered(packet_id, bool(released))
    return None
