"""The folder that holds all that a gateway keeps, used by one gateway at a time."""

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path

from gateway.errors import StartError
from gateway.storage.engine.sync_folder import make_folder

NO_DISK = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Why something cannot be made although the place is right: the gateway starts all the same."""

UMASK = 0o027
"""What is kept is the user's own, and may be read by the group."""

LOCK = "lock"
"""The file that says whose folder it is; the lock itself is on the folder, where nobody deletes
it."""

PRIVATE = ("tidegate.db*", LOCK, "reserve", "landing")
"""What an earlier version left for everybody to read."""


def keep_private() -> None:
    """Let nothing that this process makes be read by others than its user and group."""
    os.umask(os.umask(0o777) | UMASK)


class DataFolder:
    """A locked folder, for as long as this object is open."""

    def __init__(self, path: Path) -> None:
        """Make the folder if need be and lock it; raise StartError if that cannot be done.

        A folder that is not there, on a disk on which it cannot be made, needs no lock.
        """
        self.path = path
        self._descriptor: int | None = None
        try:
            self._descriptor = self._open()
        except OSError as error:
            text = f"{error.filename or path}: {error.strerror}"
            raise StartError(f"{text}; choose another data folder, or make this one") from error
        if self._descriptor is not None:
            self._lock(self._descriptor)
            self._sign()
            self._withdraw()

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _open(self) -> int | None:
        try:
            make_folder(self.path)
        except OSError as error:
            if error.errno not in NO_DISK:
                raise
        with contextlib.suppress(FileNotFoundError):
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            process = holder(self.path)
            by = f" by process {process}" if process else ""
            raise StartError(f"{self.path} is in use{by}: each gateway needs its own") from error

    def _sign(self) -> None:
        """Say whose folder it is; it is locked without that, too."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        with (
            contextlib.suppress(OSError),
            open(os.open(self.path / LOCK, flags, 0o640), "w") as file,  # noqa: PTH123 - a descriptor
        ):
            file.truncate()
            file.write(f"{os.getpid()}\n")

    def _withdraw(self) -> None:
        """Let others no longer read what is there."""
        for pattern in PRIVATE:
            for each in self.path.glob(pattern):
                with contextlib.suppress(OSError):
                    mode = stat.S_IMODE(each.stat().st_mode)
                    if mode & stat.S_IRWXO:
                        each.chmod(mode & ~stat.S_IRWXO)


def holder(path: Path) -> str:
    """Return the number of the process whose folder it is or last was, empty if none is named."""
    file = path / LOCK
    with contextlib.suppress(OSError):
        if file.is_file():
            return file.read_text(errors="replace")[:20].strip()
    return ""
