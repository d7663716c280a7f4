"""Checks the database's file, brings it to the newest schema, or replaces it if it is damaged."""

import errno
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.clock import Clock
from gateway.errors import StartError, TidegateError
from gateway.salvage.form import PAGE_BYTES, odd_file, page_bytes_of
from gateway.salvage.wal import HEADER_BYTES, read_log
from gateway.storage.engine.connection import BUSY_TIMEOUT_MS
from gateway.storage.engine.damage import (
    UNREADABLE,
    DamagedError,
    OtherSchemaError,
    is_damage,
    is_full,
    is_read_only,
    is_unreadable,
    is_write_error,
    noted_damage,
)
from gateway.storage.engine.files import journal_of, log_bytes, log_of
from gateway.storage.engine.free_space import Reserve
from gateway.storage.engine.migrations.migrate import check_schema, earlier_statements, migrate
from gateway.storage.engine.replace import finish, replace
from gateway.storage.engine.unread import note_unread

if TYPE_CHECKING:
    from gateway.salvage.salvage import Salvage


class NoDiskError(Exception):
    """The disk accepts no writes; the text says why."""


class ReadOnlyError(NoDiskError):
    """It stays so until somebody changes that."""


def has_space_for_retry(error: Exception, path: Path) -> bool:
    """Return whether a full disk has space for one more attempt."""
    return is_full(error, path.parent) and Reserve(path.parent).release()


def refusal(error: Exception, path: Path) -> Exception:
    """Return the exception to raise for an error that more space cannot solve."""
    # only now: some file systems turn read-only after an error of the disk
    if is_read_only(path.parent):
        return ReadOnlyError(f"{path.parent} is on a read-only file system")
    if is_full(error, path.parent):
        return NoDiskError(f"no space for {path}: {error}")
    if is_write_error(error):
        return NoDiskError(f"{path} cannot be written: {error}")
    return cannot_start(error, path)


def cannot_start(error: Exception, path: Path) -> StartError:
    """Return the error with advice for the user."""
    return StartError(f"{path}: {error}; {_remedy(error, path)}")


def _remedy(error: Exception, path: Path) -> str:
    if isinstance(error, sqlite3.Error) and "locked" in str(error):
        return "end the program that uses it, and start again"
    if isinstance(error, PermissionError) or not os.access(path.parent, os.W_OK | os.X_OK):
        return f"let the gateway's user write to {path.parent} and what is in it"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return "let the gateway's user read and write it"
    return "check the disk and the folder; to start without what is in it, move the file away"


logger = logging.getLogger(__name__)

T = TypeVar("T")


INCREMENTAL = 2
"""SQLite's number for `auto_vacuum = INCREMENTAL`."""

WRITTEN_ANEW_BYTES = 64 * 1024 * 1024
"""A larger database with another page size is used as it is: a start must not take minutes."""


def prepare(path: Path, clock: Clock) -> "tuple[Path | None, Salvage | None]":
    """Make sure that the file is sound and at the newest schema; raise NoDiskError or StartError.

    Return the new name of a damaged file that was set aside, and what was salvaged of it.
    """
    if is_read_only(path.parent):
        raise ReadOnlyError(f"{path.parent} is on a read-only file system")
    try:
        return _make_ready_or_replace(path, clock)
    except (sqlite3.Error, OSError) as error:
        if has_space_for_retry(error, path):
            return prepare(path, clock)
        raise refusal(error, path) from error


def is_writable_again(path: Path, clock: Clock) -> bool:
    """Return whether a failed disk can be written again, and has some space."""
    try:
        if not Reserve(path.parent).hold():
            return False
        # A salvaged database may be waiting for its place: an empty one there would hide it for
        # ever.
        finish(path, clock)
        _make(path)
    except (sqlite3.Error, OSError):
        return False
    except DamagedError:
        return True  # the start sets it aside
    return True


def _make_ready_or_replace(path: Path, clock: Clock) -> "tuple[Path | None, Salvage | None]":
    finish(path, clock)
    try:
        try:
            _make_ready(path)
        except OtherSchemaError as other:
            return _carry_over(path, clock, other)
    except DamagedError as damage:
        return _salvage(path, clock, damage)
    return None, None


def _salvage(path: Path, clock: Clock, damage: DamagedError) -> "tuple[Path, Salvage]":
    from gateway.salvage.salvage import BOUNDS, salvage

    def fill(old: Path, new: sqlite3.Connection) -> "Salvage":
        return salvage(old, new, BOUNDS, earlier_statements())

    logger.warning("%s is damaged (%s): what can be read is salvaged", path, damage)
    set_aside, result = replace(path, clock, _make, fill)
    logger.critical(
        "%s was damaged (%s): set aside as %s; %s", path, damage, set_aside.name, result
    )
    if result.found_nothing:
        note_unread(set_aside, str(damage))
    return set_aside, result


def _carry_over(
    path: Path, clock: Clock, other: OtherSchemaError
) -> "tuple[Path | None, Salvage | None]":
    """Bring the rows of a sound database into one at the newest schema; raise as `_make_ready`."""
    from gateway.salvage.bring_in import carry_over

    def fill(old: Path, new: sqlite3.Connection) -> "Salvage":
        result = carry_over(old, new)
        if result.left_out:
            raise OSError(errno.ENOSPC, f"no space for a copy of {old}, whose schema is another")
        return result

    logger.warning("%s: %s; its rows are carried over", path, other)
    try:
        set_aside, result = replace(path, clock, _make, fill, damaged=False)
    except UNREADABLE as error:
        if is_unreadable(error, path):
            raise DamagedError(str(error)) from error
        raise
    level = logging.CRITICAL if result.all_lost else logging.WARNING
    text = "%s was of another schema: saved as %s; of its rows %d are in the new one, %d are not"
    carried = sum(result.salvaged.values())
    logger.log(level, text, path, set_aside.name, carried, result.all_lost)
    return (set_aside, result) if result.all_lost else (None, None)


def _make_ready(path: Path) -> None:
    """Check and migrate; raise DamagedError, or sqlite3.Error for what is no damage."""
    try:
        check_files(path)
        if path.exists():
            check_note(path)
            check_log(path)
            if journal_of(path).exists():
                _with_connection(path.absolute().as_uri(), _roll_back)
            seconds = SECONDS_AFTER_A_CRASH if was_not_closed(path) else SECONDS_AFTER_A_STOP
            # Read only: what is damaged, or newer than we know, is left exactly as it is,
            # where another connection would fold the WAL into it when it closes.
            uri = f"{path.absolute().as_uri()}?mode=ro"
            if not _with_connection(uri, lambda connection: check_pages(connection, seconds)):
                logger.info("%s: not all pages were checked within %g s", path, seconds)
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
    _bring_to_form(connection)
    # A migration would write each page that it empties: twice the space in the log.
    connection.execute("PRAGMA secure_delete = OFF")
    _write_ahead(connection)
    migrate(connection)
    # A page is written, which a full disk refuses now and not in the middle of the start.
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")


def _bring_to_form(connection: sqlite3.Connection) -> None:
    """Rewrite a small database that another program has made with other pages.

    It is used as it is where that cannot be: pages of any size do, and without `auto_vacuum` the
    file is only never shorter again.
    """
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (auto_vacuum,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    if (page_bytes, auto_vacuum) == (PAGE_BYTES, INCREMENTAL) or not pages:
        return
    found = f"its pages have {page_bytes} bytes, auto_vacuum is {auto_vacuum}"
    if pages * page_bytes > WRITTEN_ANEW_BYTES:
        logger.info("the database is used as it is: %s", found)
        return
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    except sqlite3.Error as error:
        if is_damage(error):
            raise
        logger.warning("the database is used as it is: %s, and VACUUM failed: %s", found, error)
    else:
        logger.info("the database was rewritten with pages of %d bytes: %s", PAGE_BYTES, found)


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


@contextmanager
def open_beside(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that only reads.

    Raises TidegateError where the database cannot be opened, or what is read in the block is
    damaged. Of files that SQLite would wait for, or whose log it would delete, none is opened.
    """
    try:
        check_files(path)
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, timeout=BUSY_TIMEOUT_MS / 1000, uri=True)) as connection:
            yield connection
    except (DamagedError, *UNREADABLE) as error:
        raise TidegateError(f"{path}: {error}") from error


SECONDS_AFTER_A_STOP = 2.0
SECONDS_AFTER_A_CRASH = 10.0
"""Seconds for checking pages. Damage beyond them is found when the pages are used."""

MAXIMUM_LOG_BYTES = 64 * 1024 * 1024
"""A longer write-ahead log is not checked frame by frame; about 5 s on a small board."""


def was_not_closed(path: Path) -> bool:
    """Return whether the last run did not close the database: its log still exists."""
    return log_bytes(log_of(path)) > 0


def check_files(path: Path) -> None:
    """Raise StartError for a path that is no regular file, DamagedError for a lost database.

    SQLite would delete the log of an empty database.
    """
    odd = odd_file(path)
    if odd is not None:
        raise StartError(f"{odd}: not a regular file: move it away, or mount the disk it leads to")
    if log_bytes(log_of(path)) > HEADER_BYTES and not (path.exists() and path.stat().st_size):
        what = "empty" if path.exists() else "gone"
        raise DamagedError(f"it is {what} beside its write-ahead log")


def check_log(path: Path) -> None:
    """Raise DamagedError if frames in the middle of the log are lost, which SQLite ignores."""
    log = log_of(path)
    if 0 < log_bytes(log) <= MAXIMUM_LOG_BYTES:
        damaged = read_log(log, page_bytes_of(path)).damaged
        if damaged:
            raise DamagedError(f"the write-ahead log is damaged at {damaged} places")


def check_note(path: Path) -> None:
    """Raise DamagedError if an earlier run found damage while it used the database."""
    found = noted_damage(path)
    if found is not None:
        raise DamagedError(found or "an earlier run found damage")


def check_pages(connection: sqlite3.Connection, seconds: float) -> bool:
    """Return whether all pages could be checked in time; raise DamagedError for a bad one.

    Raises sqlite3.Error if the file cannot even be opened, StartError for a newer one, and
    OtherSchemaError for one that seems sound, with tables of another version.
    """
    different = check_schema(connection)
    with _interrupted_after(connection, seconds) as interrupted:
        try:
            # Not quick_check: with a wrong index entry SQLite skips rows.
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.OperationalError:
            if not interrupted.is_set():
                raise
            found = "ok"
    # pages that were not reached seem unused
    if found != "ok" and not interrupted.is_set():
        raise DamagedError(str(found).splitlines()[-1])
    if different:
        raise OtherSchemaError(f"its {', '.join(different[:3])} are of another version")
    return not interrupted.is_set()


@contextmanager
def _interrupted_after(connection: sqlite3.Connection, seconds: float) -> Iterator[threading.Event]:
    interrupted = threading.Event()

    def interrupt() -> None:
        interrupted.set()
        connection.interrupt()

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield interrupted
    finally:
        timer.cancel()
        timer.join()
