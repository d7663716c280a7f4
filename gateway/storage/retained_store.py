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
        self._changed: dict[str, Message | PlainMessage | None] = {}

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
        self._announce(message.qos, message.commit_within)

    def keep_run(self, messages: Sequence[PlainMessage]) -> None:
        """Do that with messages of one origin, none of which is empty, nor of a `$SYS` topic."""
        origin = messages[0].origin
        if origin.commit_within is None:
            changed = {each.topic: None for each in messages if each.topic in self._kept}
            if not changed:
                return
            self._kept.difference_update(changed)
            self._changed.update(changed)
        else:
            self._kept.update([each.topic for each in messages])
            self._changed.update([(each.topic, each) for each in messages])
        self._announce(origin.qos, origin.commit_within)

    def _announce(self, qos: int, within: float | None) -> None:
        """Announce a change that a message of this QoS and durability class has made."""
        if qos:
            self._gathering.firm(within or 0.0)
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
            elif isinstance(message, PlainMessage):
                plain.append(message_row.of_plain(message))
                size += message_row.text_size(message)
            elif message_row.is_plain(message):
                row = message_row.to_plain_row(message)
                plain.append(row)
                size += message_row.text_size(message)
            else:
                writer.add(_KEEP, message_row.to_row(message))
        writer.add_rows(_KEEP_PLAIN, plain, size)
        self._changed = {}
