"""The look at a database before it is used, bounded in time: a card reads 20 MB in a second."""

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
"""How long the pages are looked at, at most. What was not reached is found when it is used."""

MAXIMUM_LOG_BYTES = 64 * 1024 * 1024
"""Of a longer write-ahead log the frames are not checked; about 5 s on a small board."""


def was_not_closed(path: Path) -> bool:
    """Return whether the last run did not close the database: its log is still there."""
    return log_bytes(log_of(path)) > 0


def check_files(path: Path) -> None:
    """Raise StartError for one of SQLite's files that is none, DamagedError for a lost database.

    SQLite would delete the log of a database that is empty.
    """
    odd = odd_file(path)
    if odd is not None:
        raise StartError(f"{odd}: not a regular file: move it away, or mount the disk it leads to")
    if log_bytes(log_of(path)) > HEADER_BYTES and not (path.exists() and path.stat().st_size):
        what = "empty" if path.exists() else "gone"
        raise DamagedError(f"it is {what} beside its write-ahead log")


def check_log(path: Path) -> None:
    """Raise DamagedError when the log lost something in its middle, which SQLite passes over."""
    log = log_of(path)
    if 0 < log_bytes(log) <= MAXIMUM_LOG_BYTES:
        damaged = read_log(log, page_bytes_of(path)).damaged
        if damaged:
            raise DamagedError(f"the write-ahead log is damaged at {damaged} places")


def check_note(path: Path) -> None:
    """Raise DamagedError when an earlier run found damage while it used the database."""
    found = noted_damage(path)
    if found is not None:
        raise DamagedError(found or "an earlier run found damage")


def check_pages(connection: sqlite3.Connection, seconds: float) -> bool:
    """Return whether all pages could be looked at in time; raise DamagedError for a bad one.

    Raises sqlite3.Error when the file cannot even be opened, StartError for a newer one, and
    OtherSchemaError for one that is as sound as could be seen, with tables of another version.
    """
    different = check_schema(connection)
    with _interrupted_after(connection, seconds) as interrupted:
        try:
            # Not quick_check: by an index with a wrong entry SQLite passes over rows.
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.OperationalError:
            if not interrupted.is_set():
                raise
            found = "ok"
    # pages that were not reached look as if nobody used them
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
