"""The gateway's SQLite database: its connections, on disk or in memory."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.connection import BUSY_TIMEOUT_MS, Batch, Connection, Row
from gateway.storage.engine.damage import is_damage, note_damage
from gateway.storage.engine.database_file import (
    NoDiskError,
    ReadOnlyError,
    has_space_for_retry,
    prepare,
    refusal,
)
from gateway.storage.engine.free_space import Reserve
from gateway.storage.engine.unread import read_again

if TYPE_CHECKING:
    import aiosqlite

    from gateway.salvage.salvage import Salvage

BUSY_SECONDS = 5.0
"""Seconds to wait for a lock, which a reader of a write-ahead log hardly ever meets."""


class QueryConnection:
    """A read-only connection, opened with the first query.

    A database in memory is read through its one connection, `in_memory`.
    """

    def __init__(
        self,
        path: Path,
        in_memory: Connection | None,
        on_error: Callable[[sqlite3.Error], None],
    ) -> None:
        self._path = path
        self._in_memory = in_memory
        self._on_error = on_error
        self._connection: aiosqlite.Connection | None = None

    async def rows(self, statement: str, row: Row = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement; raise sqlite3.Error."""
        if self._in_memory is not None:
            return await self._in_memory.query(statement, row, sqlite3.Cursor.fetchall)
        if self._connection is None:
            import aiosqlite  # imported with the first query

            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            self._connection = await aiosqlite.connect(
                uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None
            )
        try:
            found = await self._connection.execute_fetchall(statement, row)
        except sqlite3.Error as error:
            self._on_error(error)
            raise
        return [tuple(each) for each in found]

    async def close(self) -> None:
        """Close it; the next query opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


logger = logging.getLogger(__name__)

FILE_NAME = "tidegate.db"

CHECKPOINT_BYTES = 4 * 1024 * 1024
"""Bytes of the write-ahead log after which a commit copies it into the database file: a page that
is rewritten often is copied once."""

JOURNAL_SIZE_LIMIT = 16 * 1024 * 1024
"""Bytes to which the WAL file is truncated after a checkpoint; a burst may make it larger."""

OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables; an older library would treat a sound file as damaged."""

ATTEMPTS = 2
"""Attempts of the start at a failing disk: some errors are temporary."""


@dataclass(slots=True)
class Database:
    """The open database; `reader` sees only what `writer` has committed.

    `set_aside` is the new name of the damaged file that this one replaces, or None, and `salvage`
    the result. `in_memory` is why nothing is on disk, empty if everything is, and `may_recover`
    says whether the disk may become writable. `damaged` is damage found while the file was used;
    `on_damage` are called with it. If `damage_noted`, the next start sets the file aside.
    `when_closed` are called when both connections are closed. `page_bytes` is the size of its
    pages. `unread` are unreadable files set aside earlier, which each start tries again.
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
    when_closed: list[Callable[[], None]] = field(default_factory=list)
    page_bytes: int = PAGE_BYTES
    unread: list[Path] = field(default_factory=list)
    queries: QueryConnection = field(init=False)

    def __post_init__(self) -> None:
        self.queries = QueryConnection(
            self.path, self.reader if self.in_memory else None, self._check_damage
        )
        self.writer.on_error = self.reader.on_error = self._check_damage

    @property
    def reserve(self) -> Reserve:
        """The space that is reserved for a full disk."""
        return Reserve(self.path.parent)

    async def close(self) -> None:
        """Close all connections; the last one moves the WAL into the file."""
        await self.queries.close()
        # in memory both are one connection
        if self.reader is not self.writer:
            await self.reader.close()
        await self.writer.close()
        for callback in self.when_closed:
            callback()

    def _check_damage(self, error: sqlite3.Error) -> None:
        if self.damaged or self.in_memory or not is_damage(error):
            return
        self.damaged = str(error)
        self.damage_noted = note_damage(self.path, self.damaged)
        logger.critical("%s is damaged (%s)", self.path, self.damaged)
        for callback in self.on_damage:
            callback(self.damaged)


def database_file(folder: Path) -> Path:
    """Return the path of a data folder's database; a link is resolved.

    SQLite keeps the write-ahead log beside the real file, and a file set aside must stay on that
    disk. A link that leads to no folder is returned itself: a disk may not be mounted.
    """
    path = folder / FILE_NAME
    leads_to = Path(os.path.realpath(path))
    return leads_to if path.is_symlink() and leads_to.parent.is_dir() else path


async def open_database(folder: Path, clock: Clock, first: Batch = ()) -> Database:
    """Open `<folder>/tidegate.db` at the newest schema, creating it if necessary.

    A damaged file is renamed to `tidegate.db.corrupt-<UTC time>`, with its `-wal` and `-shm`. A new
    one with the rows that could be read replaces it: the gateway must start in any case. Files set
    aside are never deleted here. If the disk accepts no writes, not even the `first` rows, the
    database is in memory. Raises StartError if the file cannot be opened for another reason, or was
    written by a newer version.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StartError(f"SQLite {sqlite3.sqlite_version} is too old, 3.37 is needed")
    path = database_file(folder)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await _on_disk(path, clock, first)
        except ReadOnlyError as error:
            return await _in_memory(path, first, str(error), may_recover=False)
        except NoDiskError as error:
            logger.warning("%s (attempt %d of %d)", error, attempt, ATTEMPTS)
            reason = str(error)
    return await _in_memory(path, first, reason, may_recover=True)


async def _on_disk(path: Path, clock: Clock, first: Batch) -> Database:
    set_aside, salvage = await asyncio.to_thread(prepare, path, clock)
    unread = await asyncio.to_thread(read_again, path, set_aside)
    writer, reader = await _connect_both(path, first)
    page_bytes = await reader.query("PRAGMA page_size", (), lambda cursor: cursor.fetchone()[0])
    return Database(path, writer, reader, set_aside, salvage, page_bytes=page_bytes, unread=unread)


async def _in_memory(path: Path, first: Batch, reason: str, *, may_recover: bool) -> Database:
    from gateway.storage.engine.memory_database import open_in_memory

    logger.critical("%s: everything is in memory only", reason)
    connection, salvage = await open_in_memory(path)
    await connection.write(first)
    return Database(path, connection, connection, None, salvage, reason, may_recover)


async def _connect_both(path: Path, first: Batch) -> tuple[Connection, Connection]:
    """Return writer and reader once `first` is on disk; raise NoDiskError or StartError."""
    async with AsyncExitStack() as opened:
        try:
            writer = await _connect(path, "PRAGMA synchronous = FULL")
            opened.push_async_callback(writer.close)
            await writer.write(first)
            reader = await _connect(path, "PRAGMA query_only = ON")
        except sqlite3.Error as error:
            if not has_space_for_retry(error, path):
                raise refusal(error, path) from error
        else:
            opened.pop_all()
            return writer, reader
    return await _connect_both(path, first)


async def _connect(path: Path, pragma: str) -> Connection:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_LIMIT}")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // page_bytes}")
        # it would write each page that becomes empty
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(pragma)
        return connection

    connection = Connection(connect)
    await connection.open()
    return connection


COUNT_START: Batch = [
    (
        "INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1",
        [("starts",)],
    )
]
"""The first rows of a gateway, on disk before anything else of this start."""


async def start_number(database: Database) -> int:
    """Return how many starts were counted."""
    statement = "SELECT value FROM meta WHERE name = ?"
    return await database.writer.query(statement, ("starts",), lambda cursor: cursor.fetchone()[0])
