"""Retained messages as rows, the last of each topic, written when a batch is closed."""

from collections.abc import Iterable, Sequence

from gateway.mqtt.message import Message
from gateway.mqtt.plain_message import PlainMessage
from gateway.storage import message_row
from gateway.storage.connection import Row
from gateway.storage.gathering import Gathering
from gateway.storage.outbox_row import insert_statement

NOT_KEPT = "$SYS/"
"""What the gateway says of itself, which it says anew after each start."""


def _replace(columns: tuple[str, ...]) -> str:
    columns = (*columns, "id")
    return insert_statement("retained", columns).replace("INSERT", "INSERT OR REPLACE", 1)


_KEEP = _replace(message_row.COLUMNS)
_KEEP_PLAIN = _replace(message_row.PLAIN_COLUMNS)
_FORGET = "DELETE FROM retained WHERE id = ?"


class RetainedStore:
    """Keeps the retained messages that the broker keeps; several of one topic become one row.

    A topic's row keeps its number for as long as there is a message; a new one goes behind all
    others, so that a commit of many topics writes few pages. `rows` are those on disk, by topic,
    and `last_row` is the highest number there; those that are `superseded` are deleted.
    What was published at QoS 0 is on disk within a second, the rest before its acknowledgement.
    """

    def __init__(
        self,
        gathering: Gathering,
        rows: dict[str, int] | None = None,
        last_row: int = 0,
        superseded: Iterable[int] = (),
    ) -> None:
        self._gathering = gathering
        self._rows = rows or {}  # by topic: on disk, or on the way there
        self._last_row = last_row
        self._changed: dict[str, Message | PlainMessage | None] = {}
        for row in superseded:
            gathering.writer.add(_FORGET, (row,))

    def keep(self, message: Message) -> None:
        """Write the message in place of its topic's last one, or delete that."""
        topic = message.topic
        if topic.startswith(NOT_KEPT):
            return
        if message.payload and message.commit_within is not None:
            self._changed[topic] = message
        elif self._is_kept(topic):
            self._changed[topic] = None
        else:
            return
        self._announce(message.qos, message.commit_within)

    def keep_run(self, messages: Sequence[PlainMessage]) -> None:
        """Do that with messages of one origin, none of which is empty, nor of a `$SYS` topic."""
        origin = messages[0].origin
        if origin.commit_within is None:
            forgotten = [each.topic for each in messages if self._is_kept(each.topic)]
            if not forgotten:
                return
            self._changed.update(dict.fromkeys(forgotten))
        else:
            self._changed.update([(each.topic, each) for each in messages])
        self._announce(origin.qos, origin.commit_within)

    def _is_kept(self, topic: str) -> bool:
        """Return whether there is a message of the topic on disk, or will be."""
        if topic in self._changed:
            return self._changed[topic] is not None
        return topic in self._rows

    def _announce(self, qos: int, within: float | None) -> None:
        """Announce a change that a message of this QoS and durability class has made."""
        if qos:
            self._gathering.firm(within or 0.0)
        else:
            self._gathering.put_off()

    def forget(self, topics: Iterable[str]) -> None:
        """Delete what has expired."""
        for topic in topics:
            if self._is_kept(topic):
                self._changed[topic] = None
                self._gathering.put_off()

    def gather(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        writer, rows = self._gathering.writer, self._rows
        plain: list[Row] = []
        size = 0
        for topic, message in self._changed.items():
            if message is None:
                if topic in rows:
                    writer.add(_FORGET, (rows.pop(topic),))
                continue
            row = rows.get(topic)
            if row is None:
                self._last_row = rows[topic] = row = self._last_row + 1
            if isinstance(message, PlainMessage):
                plain.append((*message_row.of_plain(message), row))
                size += message_row.text_size(message)
            elif message_row.is_plain(message):
                plain.append((*message_row.to_plain_row(message), row))
                size += message_row.text_size(message)
            else:
                writer.add(_KEEP, (*message_row.to_row(message), row))
        writer.add_rows(_KEEP_PLAIN, plain, size)
        self._changed = {}
