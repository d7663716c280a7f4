"""The gateway's SQLite file: opened, checked, migrated, or set aside when it is damaged."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.storage.connection import Connection
from gateway.storage.migrations.migrate import migrate, missing_columns, refuse_newer

logger = logging.getLogger(__name__)

FILE_NAME = "tidegate.db"

BUSY_TIMEOUT_MS = 5_000
"""How long a connection waits for another's lock; a checkpoint holds it for a moment."""

JOURNAL_SIZE_LIMIT = 16 * 1024 * 1024
"""Bytes to which the WAL file is cut back after a checkpoint; a burst may make it larger."""

OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables; an older library would read a sound file as a damaged one."""

_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,  # during the checks: a table that is not what the version says
}
_READ_ERRORS = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ}


class _DamagedError(Exception):
    """The file cannot be used as it is; the text says what was found."""


@dataclass(slots=True)
class Database:
    """The open database; `reader` sees only what `writer` has committed.

    `set_aside` is the new name of the damaged file that this one replaces, or None.
    """

    path: Path
    writer: Connection
    reader: Connection
    set_aside: Path | None

    async def close(self) -> None:
        """Close both connections; the last one folds the WAL into the file."""
        await self.reader.close()
        await self.writer.close()


async def open_database(folder: Path, clock: Clock) -> Database:
    """Open `<folder>/tidegate.db`, making it if need be, at the newest schema.

    A damaged file is renamed to `tidegate.db.corrupt-<UTC time>`, together with its `-wal` and
    `-shm`, and a new one takes its place: an edge gateway that does not start helps nobody.
    The files set aside are never deleted here. Raises StartError when the file cannot be
    opened for another reason, or was written by a newer version.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StartError(f"SQLite {sqlite3.sqlite_version} is too old, 3.37 is needed")
    path = folder / FILE_NAME
    set_aside = await asyncio.to_thread(_prepare, path, clock)
    writer = await _connect(path, "PRAGMA synchronous = FULL")
    try:
        reader = await _connect(path, "PRAGMA query_only = ON")
    except BaseException:
        await writer.close()
        raise
    return Database(path, writer, reader, set_aside)


def _prepare(path: Path, clock: Clock) -> Path | None:
    """Leave a sound file at the newest schema; return the new name of one set aside for it."""
    try:
        _make_ready(path)
    except _DamagedError as damage:
        set_aside = _set_aside(path, clock)
        logger.critical("%s is damaged (%s): set aside as %s", path, damage, set_aside.name)
        _make_ready(path)
        return set_aside
    return None


def _make_ready(path: Path) -> None:
    """Check and migrate; raise _DamagedError or StartError."""
    try:
        if path.exists():
            # Read only: what is damaged, or newer than we know, is left exactly as it is,
            # where another connection would fold the WAL into it when it closes.
            _with_connection(f"{path.absolute().as_uri()}?mode=ro", _check_pages)
        _with_connection(path.absolute().as_uri(), _bring_up)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code & 0xFF in _DAMAGE or code in _READ_ERRORS:
            raise _DamagedError(str(error)) from error
        raise StartError(f"{path}: {error}") from error


def _with_connection(uri: str, use: Callable[[sqlite3.Connection], None]) -> None:
    seconds = BUSY_TIMEOUT_MS / 1000
    connection = sqlite3.connect(uri, timeout=seconds, isolation_level=None, uri=True)
    try:
        use(connection)
    finally:
        connection.close()


def _bring_up(connection: sqlite3.Connection) -> None:
    # Before the first table: later it has no effect without a whole VACUUM.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    migrate(connection)
    lacking = missing_columns(connection)
    if lacking:
        raise _DamagedError(f"it lacks {', '.join(lacking[:3])}")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Raise _DamagedError unless every page is well formed (it reads the whole file)."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise _DamagedError(str(found).splitlines()[-1])
    refuse_newer(connection)


def _set_aside(path: Path, clock: Clock) -> Path:
    moment = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    new = path.with_name(f"{path.name}.corrupt-{moment:%Y%m%dT%H%M%SZ}")
    repeat = 0
    while new.exists():
        repeat += 1
        new = path.with_name(f"{path.name}.corrupt-{moment:%Y%m%dT%H%M%SZ}-{repeat}")
    try:
        for suffix in ("-wal", "-shm", ""):  # the file last: a crash in between repeats this
            if (old := path.with_name(path.name + suffix)).exists():
                old.rename(new.with_name(new.name + suffix))
        _sync_folder(path.parent)
    except OSError as error:
        raise StartError(f"{path} is damaged and cannot be set aside: {error}") from error
    return new


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _connect(path: Path, pragma: str) -> Connection:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_LIMIT}")
        connection.execute(pragma)
        return connection

    connection = Connection(connect)
    await connection
    return connection
