"""The database's file: checked, made at the newest schema, replaced when it is damaged."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.clock import Clock
from gateway.salvage.wal import PAGE_BYTES
from gateway.storage.engine.damage import UNREADABLE, DamagedError, is_read_only, is_unreadable
from gateway.storage.engine.log_file import journal_of
from gateway.storage.engine.migrations.migrate import migrate
from gateway.storage.engine.refusal import ReadOnlyError, makes_room, refusal
from gateway.storage.engine.replace import finish, replace
from gateway.storage.engine.reserve import Reserve
from gateway.storage.engine.start_check import (
    SECONDS_AFTER_A_CRASH,
    SECONDS_AFTER_A_STOP,
    check_files,
    check_log,
    check_note,
    check_pages,
    was_left_open,
)

if TYPE_CHECKING:
    from gateway.salvage.salvage import Salvage

logger = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_TIMEOUT_MS = 5_000
"""How long a connection waits for another's lock; a checkpoint holds it for a moment."""


def prepare(path: Path, clock: Clock) -> "tuple[Path | None, Salvage | None]":
    """Leave a sound file at the newest schema; raise NoDiskError or StartError.

    Return the new name of a damaged one that was set aside, and what was salvaged of it.
    """
    if is_read_only(path.parent):
        raise ReadOnlyError(f"{path.parent} is on a read-only file system")
    try:
        return _make_ready_or_replace(path, clock)
    except (sqlite3.Error, OSError) as error:
        if makes_room(error, path):
            return prepare(path, clock)
        raise refusal(error, path) from error


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
        check_files(path)
        if path.exists():
            check_note(path)
            check_log(path)
            if journal_of(path).exists():
                _with_connection(path.absolute().as_uri(), _roll_back)
            seconds = SECONDS_AFTER_A_CRASH if was_left_open(path) else SECONDS_AFTER_A_STOP
            # Read only: what is damaged, or newer than we know, is left exactly as it is,
            # where another connection would fold the WAL into it when it closes.
            uri = f"{path.absolute().as_uri()}?mode=ro"
            if not _with_connection(uri, lambda connection: check_pages(connection, seconds)):
                logger.info("%s: not all pages were looked at within %g s", path, seconds)
        _make(path)
    except UNREADABLE as error:
        if is_unreadable(error, path):
            raise DamagedError(str(error)) from error
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    """Undo what a start wrote that ended before the database had its write-ahead log.

    SQLite does that when it first reads, and cannot where it may only read.
    """
    connection.execute("SELECT count(*) FROM sqlite_schema")


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
    # A migration would write each page that it empties: twice the room in the log.
    connection.execute("PRAGMA secure_delete = OFF")
    _write_ahead(connection)
    migrate(connection)
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
