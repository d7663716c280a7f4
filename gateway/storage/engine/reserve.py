"""A file that holds space for the day on which the disk is full."""

import os
from pathlib import Path

from gateway.storage.engine.damage import free_bytes

NAME = "reserve"

RESERVE_BYTES = 16 * 1024 * 1024
"""Room that is held: a write-ahead log of its usual 4 MiB, the pages that this adds to the
database, and a large batch."""

PART_OF_DISK = 16
"""On a small file system the reserve is one part in this many."""

SMALLEST_RESERVE = 64 * 1024


class Reserve:
    """Room in `<folder>/reserve`: SQLite needs some even to delete rows.

    `release` gives it to the disk, `hold` takes it back once there is twice as much.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._folder = folder

    @property
    def is_held(self) -> bool:
        """Return whether the space is held now."""
        return self._path.exists()

    def is_scarce(self, needed: int) -> bool:
        """Return whether less is free than `needed` bytes and as much again as the reserve has."""
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return False
        return found.f_bavail * found.f_frsize < needed + _size(found)

    def hold(self) -> bool:
        """Hold the space if it is free, and as much again beside it; return whether it is held."""
        if self.is_held:
            return True
        try:
            size = _size(os.statvfs(self._folder))
            if free_bytes(self._folder) < 2 * size:
                return False
            self._allocate(size)
        except OSError:
            return False
        return True

    def release(self) -> bool:
        """Give the space back to the disk; return whether it was held."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def _allocate(self, size: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o640)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            self.release()
            raise
        finally:
            os.close(descriptor)


def _size(disk: os.statvfs_result) -> int:
    """Return how many bytes are held of a disk."""
    part = disk.f_blocks * disk.f_frsize // PART_OF_DISK
    return max(SMALLEST_RESERVE, min(RESERVE_BYTES, part))
