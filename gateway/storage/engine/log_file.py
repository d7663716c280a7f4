"""The write-ahead log: where it is, and how long."""

import os
from pathlib import Path


def log_of(database: Path) -> Path:
    """Return where the write-ahead log of `database` is."""
    return database.with_name(f"{database.name}-wal")


def log_bytes(log: Path) -> int:
    """Return the bytes of a write-ahead log, 0 if there is none."""
    try:
        return os.stat(log).st_size  # noqa: PTH116 - a third of the time, after each commit
    except FileNotFoundError:
        return 0
