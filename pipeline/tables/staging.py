"""Folders put in place whole: Spark's tasks write beside the tables, a rename shows the result.

Only the process that holds the lock renames. A job that a killed run left behind can go on for
a moment, but only in its own staging folder.
"""

import os
import secrets
import shutil
from pathlib import Path

from pipeline.place import sync

_PREFIX = "_staging-"  # Spark and other readers of Parquet folders ignore a leading underscore


def stage(root: Path) -> Path:
    """Return a new, empty folder on the tables' disk which readers of the tables ignore."""
    staging = root / f"{_PREFIX}{secrets.token_hex(8)}"
    staging.mkdir(parents=True)
    return staging


def clear(root: Path) -> None:
    """Remove all staging folders, as far as nobody writes in them any more."""
    for staging in root.glob(f"{_PREFIX}*"):
        shutil.rmtree(staging, ignore_errors=True)


def put_in_place(staged: Path, folder: Path) -> None:
    """Sync a staged folder and all in it, and rename it to `folder`, which must not exist."""
    sync_all(staged)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged.rename(folder)
    sync(folder.parent)


def sync_all(folder: Path) -> None:
    """Wait until a folder and all in it are on the disk."""
    for parent, _, files in os.walk(folder):
        for name in files:
            sync(Path(parent, name))
        sync(Path(parent))
