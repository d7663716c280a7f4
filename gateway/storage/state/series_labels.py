"""Labels of sources of readings whose series already had another source."""

import json

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.state.note import note, note_of, noted_parts

NOTE = "series"

LABELS_MAX = 10_000
"""Sources that are stored; beyond that the oldest is evicted."""


class SeriesLabels:
    """The label of a source, by the topic of the series that had another source.

    `remember` takes effect at once, and its row is in the batch of the next reading.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._labels: dict[tuple[str, str], str] = {}

    async def load(self) -> None:
        """Load the labels of an earlier run; call it once, before the first reading."""
        for part in await noted_parts(self._database, NOTE):
            topic, source, label = json.loads(part)
            self._labels[topic, source] = label

    def get(self, topic: str, source: str) -> str | None:
        """Return a source's label, None without one."""
        return self._labels.get((topic, source))

    def remember(self, topic: str, source: str, label: str) -> None:
        """Store a source's label, and add its row to the batch."""
        if self._labels.get((topic, source), label) != label:
            self._drop((topic, source))
        self._labels[topic, source] = label
        note(self._writer, _note(topic, source, label))
        if len(self._labels) > LABELS_MAX:
            self._drop(next(iter(self._labels)))

    def forget(self, node: str) -> int:
        """Forget the labels of a node; return their number."""
        start = f"sensors/{node}/"
        gone = [key for key in self._labels if key[0].startswith(start)]
        for key in gone:
            self._drop(key)
        return len(gone)

    def _drop(self, key: tuple[str, str]) -> None:
        label = self._labels.pop(key)
        note(self._writer, _note(*key, label), there=False)


def _note(topic: str, source: str, label: str) -> str:
    return note_of(NOTE, json.dumps([topic, source, label]))
