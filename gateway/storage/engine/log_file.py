"""The write-ahead log: where it is, and how long; and where a rollback journal would be."""

import os
from pathlib import Path


def log_of(database: Path) -> Path:
    """Return where the write-ahead log of `database` is."""
    return database.with_name(f"{database.name}-wal")


def journal_of(database: Path) -> Path:
    """Return where the rollback journal of `database` is while it has no write-ahead log."""
    return database.with_name(f"{database.name}-journal")


def log_bytes(log: Path) -> int:
    """Return the bytes of a write-ahead log, 0 if there is none; raise OSError."""
    try:
        return os.stat(log).st_size  # noqa: PTH116 - a third of the time, after each commit
    except FileNotFoundError:
        return 0


def known_log_bytes(log: Path) -> int:
    """Return the same in use, where a disk that does not say must end nothing: then 0, too."""
    try:
        return log_bytes(log)
    except OSError:
        return 0
