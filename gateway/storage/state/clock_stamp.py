"""Which wall clock the times on disk are of: what a start compares its own clock with."""

from dataclasses import dataclass

from gateway.storage.engine.connection import Batch
from gateway.storage.engine.database import Database

BOOT, AHEAD, WALL = "clock_boot", "clock_ahead", "clock_wall"
"""The names in `meta`."""

_SET = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_FORGET = "DELETE FROM meta WHERE name = ?"
_READ = "SELECT name, value FROM meta WHERE name IN (?, ?, ?)"

_BOOT_DIGITS = 15
"""Hexadecimal digits of a boot's name that are kept: as many as an integer of SQLite holds."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """By how many milliseconds the wall clock was ahead of the monotonic one in this boot.

    `wall` is what it said last, None while the kernel knew that it was right.
    """

    boot: int
    ahead: int
    wall: int | None = None

    @property
    def rows(self) -> Batch:
        """What writes it."""
        batch = [(_SET, [(BOOT, self.boot), (AHEAD, self.ahead)])]
        if self.wall is None:
            return [*batch, (_FORGET, [(WALL,)])]
        return [*batch, (_SET, [(WALL, self.wall)])]


def boot_number(boot_id: str) -> int:
    """Return a number for the name of a boot, such as "6145d69b-cc4a-..."; 0 for none."""
    return int(boot_id.replace("-", "")[:_BOOT_DIGITS] or "0", 16)


async def read_stamp(database: Database) -> Stamp | None:
    """Return the stamp that an earlier run left."""
    names = (BOOT, AHEAD, WALL)
    rows = await database.writer.query(_READ, names, lambda cursor: cursor.fetchall())
    found = {str(name): int(value) for name, value in rows}
    if BOOT not in found or AHEAD not in found:
        return None
    return Stamp(found[BOOT], found[AHEAD], found.get(WALL))
