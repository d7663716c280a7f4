"""Checks a database before it is used, for a bounded time: a card reads 20 MB in a second."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.errors import StartError
from gateway.salvage.form import odd_file, page_bytes_of
from gateway.salvage.wal import HEADER_BYTES, read_log
from gateway.storage.engine.damage import DamagedError, OtherSchemaError, noted_damage
from gateway.storage.engine.files import log_bytes, log_of
from gateway.storage.engine.migrations.migrate import check_schema

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
