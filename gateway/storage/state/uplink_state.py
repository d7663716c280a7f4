"""What an uplink remembers: its budget, session, topics, and messages from the fleet."""

import logging
import sqlite3
from collections.abc import Iterable
from typing import Any

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.state.note import CLEAR, is_noted, note, note_of, noted_parts

logger = logging.getLogger(__name__)

DAY, USED = "uplink_budget_day", "uplink_budget_used"
"""The names in `meta`: the day as date.toordinal counts, and its bytes."""

COMMIT_WITHIN = 10.0
"""Seconds after which a number is on disk at the latest; a crash loses later changes."""

_SAVE = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_READ = "SELECT name, value FROM meta WHERE name IN (?, ?)"


class UplinkUsage:
    """One day and its bytes in the table `meta`, for the only uplink or one of several."""

    def __init__(self, database: Database, writer: Writer, uplink: str = "") -> None:
        self._day, self._used = note_of(DAY, uplink), note_of(USED, uplink)
        self._database = database
        self._writer = writer
        self._saved = (0, 0)

    async def load(self) -> tuple[int, int]:
        """Return the day and its bytes, zeros without any."""
        rows: list[Any] = await self._database.reader.query(
            _READ, (self._day, self._used), sqlite3.Cursor.fetchall
        )
        values = dict(rows)
        self._saved = values.get(self._day, 0), values.get(self._used, 0)
        return self._saved

    def save(self, day: int, used: int) -> None:
        """Write the numbers with a later batch, unless they are unchanged."""
        if (day, used) == self._saved:
            return
        self._saved = day, used
        self._writer.add(_SAVE, (self._day, day), commit_within=COMMIT_WITHIN)
        self._writer.add(_SAVE, (self._used, used), commit_within=COMMIT_WITHIN)
        self._writer.hand_over()


RESUMABLE = "uplink_session"
"""Exists from a stop without unacknowledged messages to the next start."""


async def pop_resumable(database: Database, uplink: str = "") -> bool:
    """Return whether the last run left a session that may be resumed, and forget it.

    It is deleted on disk when this returns: after a crash nobody knows which messages the session
    still waits for. If the disk does not accept that, the next session starts clean.
    """
    name = note_of(RESUMABLE, uplink)
    if not await is_noted(database, name):
        return False
    try:
        await database.writer.write([(CLEAR, [(name,)])])
    except sqlite3.Error as error:
        logger.warning("the session at the fleet's broker starts clean: %s", error)
        return False
    return True


def note_resumable(writer: Writer, uplink: str = "") -> None:
    """Write the note that the session may be resumed."""
    note(writer, note_of(RESUMABLE, uplink))


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


REMEMBERED = 100
"""Messages that are stored: the fleet may have as many unacknowledged (Receive Maximum)."""

PREFIX = "down/"
"""The beginning of their names in `meta`; the packet identifier follows."""

_ALL = "SELECT name, value FROM meta WHERE name GLOB ?"


class DownSeen:
    """The packet identifiers of the last messages, each with a hash of its message.

    Each of several uplinks has its own. `remember` takes effect at once, and its row is in the
    batch with what the message caused here.
    """

    def __init__(self, database: Database, writer: Writer, uplink: str = "") -> None:
        self._prefix = f"{PREFIX}{uplink}/" if uplink else PREFIX
        self._database = database
        self._writer = writer
        self._hashes: dict[int, int] = {}

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before the first message."""
        which = (f"{self._prefix}[0-9]*",)
        rows = await self._database.reader.query(_ALL, which, lambda cursor: cursor.fetchall())
        names = {name.removeprefix(self._prefix): value for name, value in rows}
        self._hashes = {int(name): value for name, value in names.items() if name.isdecimal()}

    def rename(self, uplink: str) -> None:
        """Store the same under the uplink's present name."""
        hashes, self._hashes = self._hashes, {}
        for packet_id in hashes:
            self._writer.add(CLEAR, (f"{self._prefix}{packet_id}",))
        self._prefix = f"{PREFIX}{uplink}/" if uplink else PREFIX
        for packet_id, value in hashes.items():
            self.remember(packet_id, value)

    def has(self, packet_id: int, value: int) -> bool:
        """Return whether a message with this hash was accepted with this packet identifier."""
        return self._hashes.get(packet_id) == value

    def remember(self, packet_id: int, value: int) -> None:
        """Note a message as accepted, and forget the oldest of REMEMBERED."""
        self._hashes.pop(packet_id, None)
        self._hashes[packet_id] = value
        self._writer.add(_SAVE, (f"{self._prefix}{packet_id}", value))
        if len(self._hashes) > REMEMBERED:
            oldest = next(iter(self._hashes))
            del self._hashes[oldest]
            self._writer.add(CLEAR, (f"{self._prefix}{oldest}",))
