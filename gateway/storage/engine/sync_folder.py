"""Makes the names in a folder durable, which syncing a file does not."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Return once the folder's entries are on disk; raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
