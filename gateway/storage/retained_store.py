"""Retained messages as rows, the last of each topic, written when a batch is closed."""

from collections.abc import Iterable

from gateway.mqtt.message import Message
from gateway.storage import message_row
from gateway.storage.connection import Row
from gateway.storage.gathering import Gathering
from gateway.storage.outbox_row import insert_statement

NOT_KEPT = "$SYS/"
"""What the gateway says of itself, which it says anew after each start."""


def _replace(columns: tuple[str, ...]) -> str:
    return insert_statement("retained", columns).replace("INSERT", "INSERT OR REPLACE", 1)


_KEEP = _replace(message_row.COLUMNS)
_KEEP_PLAIN = _replace(message_row.PLAIN_COLUMNS)
_FORGET = "DELETE FROM retained WHERE topic = ?"


class RetainedStore:
    """Keeps the retained messages that the broker keeps; several of one topic become one row.

    What was published at QoS 0 is on disk within a second, the rest before its acknowledgement.
    """

    def __init__(self, gathering: Gathering, topics: Iterable[str] = ()) -> None:
        self._gathering = gathering
        self._kept = set(topics)  # on disk, or on the way there
        self._changed: dict[str, Message | None] = {}

    def keep(self, message: Message) -> None:
        """Write the message in place of its topic's last one, or delete that."""
        topic = message.topic
        if topic.startswith(NOT_KEPT):
            return
        if message.payload and message.commit_within is not None:
            self._kept.add(topic)
            self._changed[topic] = message
        elif topic in self._kept:
            self._kept.remove(topic)
            self._changed[topic] = None
        else:
            return
        if message.qos:
            self._gathering.firm(message.commit_within or 0.0)
        else:
            self._gathering.put_off()

    def forget(self, topics: Iterable[str]) -> None:
        """Delete what has expired."""
        for topic in topics:
            if topic in self._kept:
                self._kept.remove(topic)
                self._changed[topic] = None
                self._gathering.put_off()

    def gather(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        writer = self._gathering.writer
        plain: list[Row] = []
        size = 0
        for topic, message in self._changed.items():
            if message is None:
                writer.add(_FORGET, (topic,))
            elif message_row.is_plain(message):
                row = message_row.to_plain_row(message)
                plain.append(row)
                size += message_row.text_size(message)
            else:
                writer.add(_KEEP, message_row.to_row(message))
        writer.add_rows(_KEEP_PLAIN, plain, size)
        self._changed = {}
