"""The files beside a database, the size of its write-ahead log, and durable folders."""

import contextlib
import os
from pathlib import Path


def log_of(database: Path) -> Path:
    """Return the path of the write-ahead log of `database`."""
    return database.with_name(f"{database.name}-wal")


def journal_of(database: Path) -> Path:
    """Return the path of the rollback journal of `database`, used without a write-ahead log."""
    return database.with_name(f"{database.name}-journal")


def log_bytes(log: Path) -> int:
    """Return the bytes of a write-ahead log, 0 if there is none; raise OSError."""
    try:
        return os.stat(log).st_size  # noqa: PTH116 - a third of the time, after each commit
    except FileNotFoundError:
        return 0


def known_log_bytes(log: Path) -> int:
    """Return the same, or 0 on an error: a failed query must not stop a running gateway."""
    try:
        return log_bytes(log)
    except OSError:
        return 0


def sync_folder(folder: Path) -> None:
    """Return once the folder's entries are on disk; raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; return once their names are on disk.

    Raises OSError. A folder that exists may be from a run that was killed before its name was
    synced. Older parents that cannot be synced are not ours.
    """
    above = folder.absolute().parents
    made = sum(not each.exists() for each in above)
    folder.mkdir(parents=True, exist_ok=True)
    for each in above[: made + 1]:
        with contextlib.suppress(PermissionError):
            sync_folder(each)
    for each in above[made + 1 :]:
        with contextlib.suppress(OSError):
            sync_folder(each)
