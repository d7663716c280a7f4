"""The gateway's SQLite file: opened, checked, migrated, replaced when damaged, or in memory."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.storage.connection import Batch, Connection
from gateway.storage.damage import (
    DamagedError,
    is_damage,
    is_full,
    is_read_only,
    is_write_error,
    note_damage,
)
from gateway.storage.migrations.migrate import migrate, missing_columns
from gateway.storage.replace import finish, replace
from gateway.storage.reserve import Reserve
from gateway.storage.salvage.wal import PAGE_BYTES
from gateway.storage.start_check import (
    SECONDS_AFTER_A_CRASH,
    SECONDS_AFTER_A_STOP,
    check_log,
    check_note,
    check_pages,
    was_left_open,
)

if TYPE_CHECKING:
    from gateway.storage.salvage.salvage import Salvage

logger = logging.getLogger(__name__)

T = TypeVar("T")

FILE_NAME = "tidegate.db"

BUSY_TIMEOUT_MS = 5_000
"""How long a connection waits for another's lock; a checkpoint holds it for a moment."""

JOURNAL_SIZE_LIMIT = 16 * 1024 * 1024
"""Bytes to which the WAL file is cut back after a checkpoint; a burst may make it larger."""

OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables; an older library would read a sound file as a damaged one."""


ATTEMPTS = 2
"""How often the start asks a disk that gives an error: some errors pass."""


class _NoDiskError(Exception):
    """The disk takes nothing; the text says why."""


class _ReadOnlyError(_NoDiskError):
    """Nor is it going to while somebody leaves it so."""


@dataclass(slots=True)
class Database:
    """The open database; `reader` sees only what `writer` has committed.

    `set_aside` is the new name of the damaged file that this one replaces, or None, and
    `salvage` says what came of it. `in_memory` is why nothing is on disk, empty when all is,
    and `may_recover` says that the disk may take it later. `damaged` is what was found to be
    wrong while the file was used; `on_damage` are called with it. When `damage_noted`, the next
    start sets the file aside.
    """

    path: Path
    writer: Connection
    reader: Connection
    set_aside: Path | None = None
    salvage: "Salvage | None" = None
    in_memory: str = ""
    may_recover: bool = False
    damaged: str = ""
    damage_noted: bool = False
    on_damage: list[Callable[[str], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writer.on_error = self.reader.on_error = self._look_at

    @property
    def reserve(self) -> Reserve:
        """The room that is held for a full disk."""
        return Reserve(self.path.parent)

    async def close(self) -> None:
        """Close both connections; the last one folds the WAL into the file."""
        if self.reader is not self.writer:
            await self.reader.close()
        await self.writer.close()

    def _look_at(self, error: sqlite3.Error) -> None:
        if self.damaged or self.in_memory or not is_damage(error):
            return
        self.damaged = str(error)
        self.damage_noted = note_damage(self.path, self.damaged)
        logger.critical("%s is damaged (%s)", self.path, self.damaged)
        for callback in self.on_damage:
            callback(self.damaged)


async def open_database(folder: Path, clock: Clock, first: Batch = ()) -> Database:
    """Open `<folder>/tidegate.db`, making it if need be, at the newest schema.

    A damaged file is renamed to `tidegate.db.corrupt-<UTC time>`, together with its `-wal` and
    `-shm`, and a new one with the rows that could be read takes its place: an edge gateway that
    does not start helps nobody. The files set aside are never deleted here. Where the disk
    takes nothing, not even the `first` rows, the database is in memory. Raises StartError when
    the file cannot be opened for another reason, or was written by a newer version.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StartError(f"SQLite {sqlite3.sqlite_version} is too old, 3.37 is needed")
    path = folder / FILE_NAME
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await _on_disk(path, clock, first)
        except _ReadOnlyError as error:
            return await _in_memory(path, first, str(error), may_recover=False)
        except _NoDiskError as error:
            logger.warning("%s (attempt %d of %d)", error, attempt, ATTEMPTS)
            reason = str(error)
    return await _in_memory(path, first, reason, may_recover=True)


async def _on_disk(path: Path, clock: Clock, first: Batch) -> Database:
    set_aside, salvage = await asyncio.to_thread(_prepare, path, clock)
    writer, reader = await _connect_both(path, first)
    return Database(path, writer, reader, set_aside, salvage)


async def _in_memory(path: Path, first: Batch, reason: str, *, may_recover: bool) -> Database:
    from gateway.storage.memory_database import open_in_memory

    logger.critical("%s: everything is kept in memory only", reason)
    connection, salvage = await open_in_memory(path)
    await connection.write(first)
    return Database(path, connection, connection, None, salvage, reason, may_recover)


def takes_again(path: Path) -> bool:
    """Return whether a disk that took nothing takes a database by now, and has some room."""
    try:
        if not Reserve(path.parent).hold():
            return False
        _make(path)
    except (sqlite3.Error, OSError):
        return False
    except DamagedError:
        return True  # the start sets it aside
    return True


async def _connect_both(path: Path, first: Batch) -> tuple[Connection, Connection]:
    """Return writer and reader once `first` is on disk; raise _NoDiskError or StartError."""
    async with AsyncExitStack() as opened:
        try:
            writer = await _connect(path, "PRAGMA synchronous = FULL")
            opened.push_async_callback(writer.close)
            await writer.write(first)
            reader = await _connect(path, "PRAGMA query_only = ON")
        except sqlite3.Error as error:
            if not _makes_room(error, path):
                raise _refusal(error, path) from error
        else:
            opened.pop_all()
            return writer, reader
    return await _connect_both(path, first)


def _prepare(path: Path, clock: Clock) -> "tuple[Path | None, Salvage | None]":
    """Leave a sound file at the newest schema; raise _NoDiskError or StartError."""
    if is_read_only(path.parent):
        raise _ReadOnlyError(f"{path.parent} is on a read-only file system")
    try:
        return _make_ready_or_replace(path, clock)
    except (sqlite3.Error, OSError) as error:
        if _makes_room(error, path):
            return _prepare(path, clock)
        raise _refusal(error, path) from error


def _makes_room(error: Exception, path: Path) -> bool:
    """Return whether a full disk has some room for one more attempt."""
    return is_full(error, path.parent) and Reserve(path.parent).release()


def _refusal(error: Exception, path: Path) -> Exception:
    """Return what is to be raised of an error that no more room can help."""
    if is_read_only(path.parent):  # by now: some file systems answer an error of the disk so
        return _ReadOnlyError(f"{path.parent} is on a read-only file system")
    if is_full(error, path.parent):
        return _NoDiskError(f"no room for {path}: {error}")
    if is_write_error(error):
        return _NoDiskError(f"{path} cannot be written: {error}")
    return StartError(f"{path}: {error}")


def _make_ready_or_replace(path: Path, clock: Clock) -> "tuple[Path | None, Salvage | None]":
    finish(path, clock)
    try:
        _make_ready(path)
    except DamagedError as damage:
        logger.warning("%s is damaged (%s): what can be read is salvaged", path, damage)
        set_aside, salvage = replace(path, clock, _make)
        logger.critical(
            "%s was damaged (%s): set aside as %s; %s", path, damage, set_aside.name, salvage
        )
        return set_aside, salvage
    return None, None


def _make_ready(path: Path) -> None:
    """Check and migrate; raise DamagedError, or sqlite3.Error for what is no damage."""
    try:
        if path.exists():
            check_note(path)
            check_log(path)
            seconds = SECONDS_AFTER_A_CRASH if was_left_open(path) else SECONDS_AFTER_A_STOP
            # Read only: what is damaged, or newer than we know, is left exactly as it is,
            # where another connection would fold the WAL into it when it closes.
            uri = f"{path.absolute().as_uri()}?mode=ro"
            if not _with_connection(uri, lambda connection: check_pages(connection, seconds)):
                logger.info("%s: not all pages were looked at within %g s", path, seconds)
        _make(path)
    except sqlite3.Error as error:
        wrong_table = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_ERROR
        if is_damage(error) or wrong_table:
            raise DamagedError(str(error)) from error
        raise


def _make(path: Path) -> None:
    """Make the file if need be, at the newest schema; a page of it is written."""
    _with_connection(path.absolute().as_uri(), _bring_up)


def _with_connection(uri: str, use: Callable[[sqlite3.Connection], T]) -> T:
    seconds = BUSY_TIMEOUT_MS / 1000
    connection = sqlite3.connect(uri, timeout=seconds, isolation_level=None, uri=True)
    try:
        return use(connection)
    finally:
        connection.close()


def _bring_up(connection: sqlite3.Connection) -> None:
    # Both before the first table: later they have no effect without a whole VACUUM.
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _write_ahead(connection)
    migrate(connection)
    lacking = missing_columns(connection)
    if lacking:
        raise DamagedError(f"it lacks {', '.join(lacking[:3])}")
    # A page is written, which a full disk refuses now and not in the middle of the start.
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, trying twice.

    SQLite says of an error of the disk only that the mode is still the old one; a file system
    without shared memory says the same each time.
    """
    for _ in range(2):
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode == "wal":
            return
    logger.warning("the database has no write-ahead log: its journal mode stays %s", mode)


async def _connect(path: Path, pragma: str) -> Connection:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_LIMIT}")
        connection.execute("PRAGMA secure_delete = OFF")  # it writes each page that it empties
        connection.execute(pragma)
        return connection

    connection = Connection(connect)
    await connection
    return connection
