"""The topics to which the session at the fleet's broker is subscribed."""

from collections.abc import Iterable

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.state.note import note, note_of, noted_parts

TOPICS = "uplink_topics:"
"""The beginning of their names in `meta`; the uplink's name and the topic follow."""


class FleetTopics:
    """The `topics` of one uplink, also those of an earlier run."""

    def __init__(self, database: Database, writer: Writer, uplink: str = "") -> None:
        self.topics: set[str] = set()
        self._name = TOPICS + uplink
        self._database = database
        self._writer = writer

    async def load(self) -> None:
        """Learn what an earlier run left; raise sqlite3.Error."""
        self.topics = {*await noted_parts(self._database, self._name)}

    def add(self, topics: Iterable[str]) -> None:
        """Note topics with the next commit."""
        for each in set(topics) - self.topics:
            note(self._writer, note_of(self._name, each))
            self.topics.add(each)
        self._writer.hand_over()

    def discard(self, topics: Iterable[str]) -> None:
        """Note that topics are subscribed to no more."""
        for each in self.topics & set(topics):
            note(self._writer, note_of(self._name, each), there=False)
            self.topics.discard(each)
        self._writer.hand_over()
