"""Messages that persistent sessions are owed, each as one row however many are owed it."""

from gateway.mqtt.message import Message
from gateway.storage import message_row
from gateway.storage.gathering import Add, runs
from gateway.storage.outbox_row import insert_statement

INSERT = insert_statement("message", ("id", *message_row.COLUMNS))
_DELETE = "DELETE FROM message WHERE id BETWEEN ? AND ?"
_DELETE_ALL = "DELETE FROM message"


class MessageStore:
    """Counts who is owed a message, and writes and deletes its row.

    `last` is the highest number of a row, `on_disk` how many rows there are.
    """

    def __init__(self, last: int = 0, on_disk: int = 0) -> None:
        self._last = last
        self._on_disk = on_disk
        self._new: dict[int, Message] = {}  # by number: owed, and not written yet
        self._gone: list[int] = []

    def hold(self, message: Message) -> None:
        """Note that one session more is owed the message."""
        if not message.owed:
            self._last += 1
            message.row = self._last
            self._new[message.row] = message
        message.owed += 1

    def release(self, message: Message) -> int:
        """Note that one of the sessions that `hold` was called for is owed it no more.

        Returns how many rows need not be written because of that: 1 or 0.
        """
        message.owed -= 1
        if message.owed:
            return 0
        if self._new.pop(message.row, None) is not None:
            return 1
        self._gone.append(message.row)
        return 0

    def delete(self, rows: list[int]) -> None:
        """Note that these are owed to nobody: an earlier run left them behind."""
        self._gone += rows

    def gather(self, add: Add, rows: set[int]) -> None:
        """Add what writes those of `rows` that are new, and deletes what is owed no more."""
        for row in sorted(rows & self._new.keys()):
            add(INSERT, (row, *message_row.to_row(self._new.pop(row))))
            self._on_disk += 1
        gone, self._gone = self._gone, []
        self._on_disk -= len(gone)
        if gone and not self._on_disk:
            # SQLite empties a table without writing its pages, where rows cost what they occupy
            add(_DELETE_ALL, ())
            return
        for run in runs(gone):
            add(_DELETE, run)
