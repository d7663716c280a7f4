"""Retained messages as rows, the last of each topic, written when a batch is closed."""

from collections.abc import Iterable
from itertools import islice

from gateway.mqtt.codec.publish import NO_PUBLISH_PROPERTIES
from gateway.mqtt.publication import Publication
from gateway.storage.engine.connection import Row
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS, PLAIN_COLUMNS
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.sessions import message_row

NOT_STORED = "$SYS/"
"""Topics of the gateway's own figures, which it publishes again after each start."""

LATER_AT_ONCE = 2_048
"""Changes that no answer waits for in one batch: making rows of them takes some 4 ms, and there may
be 90,000 in a second."""

ROWS_AT_ONCE = 2_048
"""Changes that answers wait for above which they become rows before the batch is closed, which a
slow disk delays: as rows they count towards `Writer.full`."""


def _replace(columns: tuple[str, ...]) -> str:
    columns = (*columns, "id")
    return insert_statement("retained", columns).replace("INSERT", "INSERT OR REPLACE", 1)


_INSERT = _replace(MESSAGE_COLUMNS)
_INSERT_PLAIN = _replace(PLAIN_COLUMNS)
_FORGET = "DELETE FROM retained WHERE id = ?"


class RetainedStore:
    """Stores the broker's retained messages; several of one topic become one row.

    A topic's row keeps its number while there is a message; a new one is appended, so that a commit
    of many topics writes few pages. `rows` are those on disk, by topic, and `last_row` is the
    highest number there; `superseded` ones are deleted. QoS 0 messages are on disk within about a
    second, others before their acknowledgement.
    """

    def __init__(
        self,
        pending: PendingBatch,
        rows: dict[str, int] | None = None,
        last_row: int = 0,
        superseded: Iterable[int] = (),
    ) -> None:
        self._pending = pending
        self._rows = rows or {}  # by topic: on disk, or pending
        self._last_row = last_row
        self.changed: dict[str, Publication | None] = {}  # of the present batch
        self.later: dict[str, Publication | None] = {}  # of the next batches, in pieces
        for row in superseded:
            pending.writer.add(_FORGET, (row,))

    def store(self, publication: Publication) -> None:
        """Write the message in place of its topic's last one, or delete that."""
        topic = publication.topic
        if topic.startswith(NOT_STORED):
            return
        commit_within = publication.commit_within
        stored: Publication | None = publication
        if commit_within is None or not publication.packets.payload_bytes(0, 1):
            if not self._is_stored(topic):
                return
            stored = None
        if publication.qos:
            if self.later:
                self.later.pop(topic, None)
            self.changed[topic] = stored
            self._pending.changed(commit_within or 0.0)
            if len(self.changed) >= ROWS_AT_ONCE:
                self._make_rows()
        else:
            self._change_later(topic, stored)

    def _change_later(self, topic: str, stored: Publication | None) -> None:
        (self.changed if topic in self.changed else self.later)[topic] = stored
        self._pending.put_off()

    def _is_stored(self, topic: str) -> bool:
        """Return whether the topic has a message on disk, or will have one."""
        for changes in (self.later, self.changed):
            if topic in changes:
                return changes[topic] is not None
        return topic in self._rows

    def forget(self, topics: Iterable[str]) -> None:
        """Delete what has expired."""
        for topic in topics:
            if self._is_stored(topic):
                self._change_later(topic, None)

    def add_rows(self) -> None:
        """Give the writer the rows of the changes; it is about to close a batch."""
        self._add_postponed()
        self._make_rows()

    def _make_rows(self) -> None:
        """Give the writer the rows of what has changed."""
        writer, rows = self._pending.writer, self._rows
        plain: list[Row] = []
        size = 0
        for topic, publication in self.changed.items():
            if publication is None:
                if topic in rows:
                    writer.add(_FORGET, (rows.pop(topic),))
                continue
            row = rows.get(topic)
            if row is None:
                self._last_row = rows[topic] = row = self._last_row + 1
            if publication.properties is NO_PUBLISH_PROPERTIES:
                plain.append((*message_row.to_plain_row(publication), row))
                size += message_row.text_size(publication)
            else:
                writer.add(_INSERT, (*message_row.to_row(publication), row))
        writer.add_rows(_INSERT_PLAIN, plain, size)
        self.changed = {}

    def _add_postponed(self) -> None:
        """Add as many postponed changes to this batch as one may have."""
        later = self.later
        if len(later) <= LATER_AT_ONCE:
            self.changed.update(later)
            self.later = {}
            return
        for topic in list(islice(later, LATER_AT_ONCE)):
            self.changed[topic] = later.pop(topic)
        self._pending.go_on()
