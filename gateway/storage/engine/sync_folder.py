"""Makes the names in a folder durable, which syncing a file does not."""

import contextlib
import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Return once the folder's entries are on disk; raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, if need be; return once their names are on disk.

    Raises OSError. A folder that is there may be of a run that was killed before its name was
    synced. Those above that were there before and cannot be synced are not ours.
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
