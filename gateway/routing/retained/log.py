"""Retained messages in an order in which they can be read piece by piece while others come."""

from itertools import accumulate

from gateway.mqtt.publication import Publication

SPARE_ENTRIES = 1_024
"""Empty entries of the log, beside as many as it has messages, before it is written anew."""

_SPARE_ENTRIES = SPARE_ENTRIES  # compiled, a C name that no other module sees


class Cursor:
    """Where somebody who reads a log stands: the messages from `index` on, before `end`.

    Those at `end` and behind it came, or were put there, after the reader.
    """

    __slots__ = ("end", "index")

    def __init__(self, end: int) -> None:
        self.index = 0
        self.end = end

    @property
    def done(self) -> bool:
        """Whether there is nothing more to read."""
        return self.index >= self.end


class RetainedLog:
    """Messages by topic, each at an index that only `renew` changes; a new one comes last.

    So a reader needs to know no more than an index. Those that messages have left stay empty until
    they are too many; then all that stand behind move up, and all cursors with them.
    """

    __slots__ = ("_cursors", "_end", "_indexes", "_log")

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}  # by topic
        self._log: list[Publication | None] = []
        self._cursors: dict[Cursor, None] = {}
        self._end = 0  # of the last cursor that began, which no other one exceeds

    def __len__(self) -> int:
        return len(self._indexes)

    def get(self, topic: str) -> Publication | None:
        """Return the message of this topic."""
        index = self._indexes.get(topic)
        return None if index is None else self._log[index]

    def put(self, topic: str, message: Publication) -> None:
        """Keep the message where its topic's last one is."""
        self._log[self._indexes[topic]] = message

    def pop(self, topic: str) -> Publication | None:
        """Remove and return the message of this topic."""
        index = self._indexes.pop(topic, None)
        if index is None:
            return None
        message = self._log[index]
        self._log[index] = None
        return message

    def index(self, topic: str) -> int:
        """Return where the message of this topic is, for as long as none comes; -1 without one."""
        return self._indexes.get(topic, -1)

    def open(self) -> Cursor:
        """Return a cursor before all that is here; `close` it once it is not needed any more."""
        cursor = Cursor(len(self._log))
        self._cursors[cursor] = None
        self._end = cursor.end
        return cursor

    def close(self, cursor: Cursor) -> None:
        """Forget a cursor."""
        del self._cursors[cursor]
        if not self._cursors:
            self._end = 0

    def read(self, cursor: Cursor, most: int) -> list[Publication]:
        """Return what is in the next entries, at most so many, and move the cursor behind them."""
        index = min(cursor.index + most, cursor.end)
        found = self._log[cursor.index : index]
        cursor.index = index
        return [each for each in found if each is not None]

    def is_ahead(self, topic: str) -> bool:
        """Return whether a cursor may still come to the message of this topic."""
        return 0 <= self._indexes.get(topic, -1) < self._end

    def renew(self, topic: str) -> None:
        """Put the message of this topic behind all others, where no cursor comes to."""
        message = self.pop(topic)
        if message is not None:
            self.append(topic, message)

    def append(self, topic: str, message: Publication) -> None:
        """Keep the first message of a topic as the newest of all."""
        log, indexes = self._log, self._indexes
        if len(log) >= 2 * len(indexes) + _SPARE_ENTRIES:
            self._close_up()
            log = self._log
        indexes[topic] = len(log)
        log.append(message)

    def _close_up(self) -> None:
        """Leave no entry empty."""
        messages = [each for each in self._log if each is not None]
        if self._cursors:
            before = [0, *accumulate([each is not None for each in self._log])]
            for cursor in self._cursors:
                cursor.index = before[cursor.index]
                cursor.end = before[cursor.end]
            self._end = before[self._end]
        for index, message in enumerate(messages):
            self._indexes[message.topic] = index
        self._log = [*messages]
