"""The newest rows of the outbox in memory, so that live ones are not read back from the disk."""

from gateway.storage.engine.connection import Row
from gateway.storage.outbox import reader as outbox_reader
from gateway.storage.outbox.outbox_row import OutboxRow, from_columns

MAX_RECENT_ROWS = 1_024
"""Rows that are kept; older ones are read from the disk."""

MAX_RECENT_BYTES = 1024 * 1024
"""Bytes of the same rows, as the outbox counts them; the newest stays whatever its size."""


class RecentRows:
    """The values of the rows with the highest ids, as they go to the disk."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, Row, int]] = {}
        self._bytes = 0
        self._complete_from = 0

    def start(self, last_id: int) -> None:
        """Begin behind the rows that an earlier run left."""
        self._complete_from = last_id + 1

    def add(self, identifier: int, size: int, values: Row, uplinks: int = 1) -> None:
        """Take in a row that is being written; those that came first go for it."""
        self._rows[identifier] = (size, values, uplinks)
        self._bytes += size
        while len(self._rows) > MAX_RECENT_ROWS or (
            self._bytes > MAX_RECENT_BYTES and len(self._rows) > 1
        ):
            oldest = next(iter(self._rows))
            self._bytes -= self._rows.pop(oldest)[0]
            self._complete_from = max(self._complete_from, oldest + 1)

    def remove(self, identifier: int) -> None:
        """Forget a row that has left."""
        if (found := self._rows.pop(identifier, None)) is not None:
            self._bytes -= found[0]

    def change(self, identifier: int, uplinks: int) -> None:
        """Note that these uplinks and no others wait for a row."""
        if (found := self._rows.get(identifier)) is not None:
            self._rows[identifier] = (*found[:2], uplinks)

    def fetch(
        self,
        after_id: int,
        up_to: int,
        limit: int,
        *,
        lane: str | None,
        stream: str | None,
        uplink: int = 1,
    ) -> list[OutboxRow] | None:
        """Return what `OutboxReader.fetch` would, None if the disk has to be asked."""
        if after_id + 1 < self._complete_from or up_to - after_id > MAX_RECENT_ROWS:
            return None
        rows: list[OutboxRow] = []
        size = 0
        for identifier in range(after_id + 1, up_to + 1):
            found = self._rows.get(identifier)
            if found is None or not found[2] & uplink:
                continue  # it has left, or has never been for this uplink
            row = from_columns(found[1])
            row.uplinks = found[2]
            if (lane is None or row.lane == lane) and (stream is None or row.stream == stream):
                rows.append(row)
                size += row.size
                if len(rows) >= limit or size >= outbox_reader.MAX_FETCH_BYTES:
                    break
        return rows
