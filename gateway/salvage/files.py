"""The files of a database, and what may stand under their names."""

import os
from pathlib import Path


def odd_file(path: Path) -> Path | None:
    """Return one of SQLite's files of the database at `path` that is something else, or None.

    SQLite waits for ever at a FIFO, and opens nothing beside a link that leads nowhere.
    """
    if path.exists() and not path.is_file():
        return path
    beside = (path.with_name(path.name + suffix) for suffix in ("-journal", "-wal", "-shm"))
    return next((each for each in beside if os.path.lexists(each) and not each.is_file()), None)
