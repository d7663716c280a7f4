"""Keeps the oldest rows of each stream known, as far as its settings may give them up."""

from collections.abc import Callable

from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.streams.stream import HEAD_ROWS, OutboxStream
from gateway.storage.outbox.streams.streams import OutboxStreams


class OutboxHeads:
    """Reads on where a stream knows few of its oldest rows, and there are more on disk."""

    def __init__(self, reader: OutboxReader, streams: OutboxStreams) -> None:
        self._reader = reader
        self._streams = streams

    def lacks(self, committed_id: int) -> bool:
        """Return whether there is something to read up to this id."""
        return self._next(committed_id) is not None

    async def read(self, committed_id: Callable[[], int]) -> None:
        """Read until nothing is lacking up to the highest id on disk; raise sqlite3.Error."""
        while (stream := self._next(up_to := committed_id())) is not None:
            rows = await self._reader.head(stream.settings.name, stream.known_to, up_to, HEAD_ROWS)
            known_to = rows[-1].id if len(rows) == HEAD_ROWS else up_to
            stream.read_on([row for row in rows if self._reader.shows(row.id)], known_to)

    def _next(self, committed_id: int) -> OutboxStream | None:
        streams = (stream for stream in self._streams if stream.known_to < committed_id)
        return next((stream for stream in streams if stream.wants_more), None)
