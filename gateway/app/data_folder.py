"""The folder that holds all that a gateway keeps, used by one gateway at a time."""

import fcntl
import os
from pathlib import Path

from gateway.errors import StartError


class DataFolder:
    """A folder with a lock in it, held for as long as this object is open."""

    def __init__(self, path: Path) -> None:
        """Make the folder if need be and lock it; raise StartError if that cannot be done."""
        self.path = path
        lock = path / "lock"
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise StartError(f"{error.filename or path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 20).decode(errors="replace").strip()
            os.close(self._descriptor)
            by = f" by process {holder}" if holder else ""
            raise StartError(f"{path} is in use{by}: each gateway needs its own") from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def close(self) -> None:
        """Let another gateway use the folder."""
        os.close(self._descriptor)
