"""Writes an open database whose files are gone to a new file in their place."""

import os
from pathlib import Path

from gateway.clock import Clock
from gateway.storage.engine.connection import Connection
from gateway.storage.engine.replace import put_in_place
from gateway.storage.engine.sync_folder import make_folder

RESCUED = ".rescued"
"""What the copy's name ends with until it is whole and on disk."""


async def rescue(connection: Connection, path: Path, clock: Clock) -> None:
    """Return once all that the connection has committed is in `path`; raise OSError, sqlite3.Error.

    What stands there by now under the names of the database is set aside.
    """
    copy = path.with_name(path.name + RESCUED)
    await connection.run(lambda: _make_way(copy))
    await connection.query("VACUUM INTO ?", (str(copy),), lambda cursor: cursor.fetchall())
    await connection.run(lambda: _settle(copy, path, clock))


def _make_way(copy: Path) -> None:
    make_folder(copy.parent)
    copy.unlink(missing_ok=True)


def _settle(copy: Path, path: Path, clock: Clock) -> None:
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
    put_in_place(copy, path, clock)
