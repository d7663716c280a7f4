"""The folder that holds all that a gateway keeps, used by one gateway at a time."""

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from gateway.errors import StartError

NO_DISK = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""Why a file cannot be made although the place is right: the gateway starts all the same."""


class DataFolder:
    """A folder with a lock in it, held for as long as this object is open."""

    def __init__(self, path: Path) -> None:
        """Make the folder if need be and lock it; raise StartError if that cannot be done.

        Where the disk takes no lock file the folder itself is locked; a folder that is not
        there and cannot be made needs no lock.
        """
        self.path = path
        self._descriptor: int | None = None
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise StartError(f"{error.filename or path}: {error.strerror}") from error
        if self._descriptor is not None:
            self._lock(self._descriptor)

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _open(self) -> int | None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            if error.errno not in NO_DISK:
                raise
            return self._open_without_disk()

    def _open_without_disk(self) -> int | None:
        for place in (self.path / "lock", self.path):
            with contextlib.suppress(FileNotFoundError):
                return os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        return None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._holder(descriptor)
            os.close(descriptor)
            by = f" by process {holder}" if holder else ""
            raise StartError(f"{self.path} is in use{by}: each gateway needs its own") from error
        with contextlib.suppress(OSError):  # the lock holds without saying whose it is
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())

    @staticmethod
    def _holder(descriptor: int) -> str:
        try:
            return os.read(descriptor, 20).decode(errors="replace").strip()
        except IsADirectoryError:
            return ""
