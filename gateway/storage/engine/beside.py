"""Reads a database from outside the gateway, which may be using it meanwhile."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from gateway.errors import TidegateError
from gateway.storage.engine.damage import UNREADABLE, DamagedError
from gateway.storage.engine.database_file import BUSY_TIMEOUT_MS
from gateway.storage.engine.start_check import check_files


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
