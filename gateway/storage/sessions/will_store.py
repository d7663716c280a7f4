"""The wills of clients as rows, written when a batch is closed."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.access.listeners import UNKNOWN, Origin
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.storage.engine.connection import Row
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.message_columns import PROPERTY_COLUMNS, property_values
from gateway.storage.engine.pending_batch import PendingBatch

COLUMNS = (
    "client_id",
    "username",
    "listener",
    "local",
    "proven",
    "due",
    "delay",
    "topic",
    "payload",
    "qos",
    "retain",
    *PROPERTY_COLUMNS,
)
"""The columns of `will`, in the order of `_to_plain_row` and `property_values`."""

_FORGET = "DELETE FROM will WHERE client_id = ?"
_INSERT = insert_statement("will", COLUMNS)
_INSERT_PLAIN = insert_statement("will", COLUMNS[: -len(PROPERTY_COLUMNS)])
"""The columns of most wills: to bind six more NULLs takes a third of the time for the row."""

_DUE = "UPDATE will SET due = ? WHERE client_id = ?"


@dataclass(slots=True)
class _Change:
    """An unwritten change of a client's will: a new one or None, or when it is due."""

    will: Will | None = None
    username: str | None = None
    origin: Origin = UNKNOWN
    due: int | None = None
    replaced: bool = True
    new: bool = False  # the client has no row yet


class WillStore:
    """Stores the wills of all clients until they are published or removed."""

    __slots__ = ("_pending", "_stored", "changed")

    def __init__(self, pending: PendingBatch, client_ids: Iterable[str] = ()) -> None:
        self._pending = pending
        self._stored = set(client_ids)  # on disk, or pending
        self.changed: dict[str, _Change] = {}

    def store(self, client_id: str, username: str | None, origin: Origin, will: Will) -> None:
        """Write the will of a client with this origin, in place of its last one."""
        new = client_id not in self._stored and client_id not in self.changed
        self._stored.add(client_id)
        self.changed[client_id] = _Change(will, username, origin, new=new)
        self._pending.changed()

    def postpone(self, client_id: str, due: int) -> None:
        """Write when the will is to be published: wall time, milliseconds since 1970."""
        self.changed.setdefault(client_id, _Change(replaced=False)).due = due
        self._pending.put_off()

    def drop(self, client_id: str) -> None:
        """Delete the client's will, if it has one."""
        if client_id in self._stored:
            self._stored.remove(client_id)
            self.changed[client_id] = _Change()
            self._pending.changed()

    def add_rows(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        add = self._pending.writer.add
        for client_id, change in self.changed.items():
            if not change.replaced:
                add(_DUE, (change.due, client_id))
            elif not change.new:
                add(_FORGET, (client_id,))
        plain: list[Row] = []  # collected: many are inserted at once
        size = 0
        for client_id, change in self.changed.items():
            will = change.will
            if will is None:
                continue
            row = _to_plain_row(client_id, change, will)
            if will.properties is NO_PROPERTIES:
                size += len(client_id) + len(change.username or "")
                size += len(change.origin.listener or "")
                size += len(will.topic) + len(will.payload)
                plain.append(row)
            else:
                add(_INSERT, (*row, *property_values(will.properties)))
        self._pending.writer.add_rows(_INSERT_PLAIN, plain, size)
        self.changed = {}


def _to_plain_row(client_id: str, change: _Change, will: Will) -> Row:
    return (
        client_id,
        change.username,
        *change.origin,
        change.due,
        will.properties.will_delay_interval or 0,
        will.topic,
        will.payload,
        will.qos,
        will.retain,
    )
