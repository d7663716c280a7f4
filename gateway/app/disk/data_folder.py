"""The folder with a gateway's data, used by one gateway at a time."""

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path

from gateway.errors import StartError
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.engine.files import make_folder

NO_DISK = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors after which the gateway starts even though the folder cannot be made."""

UMASK = 0o027
"""Data is the user's own, and may be read by the group."""

LOCK = "lock"
"""Names the owner of the folder; the lock itself is on the folder, which nobody deletes."""

PRIVATE = ("tidegate.db*", LOCK, "reserve", "landing")
"""Files that an earlier version left readable for everybody."""


def keep_private() -> None:
    """Make all new files of this process unreadable for other users."""
    os.umask(os.umask(0o777) | UMASK)


class DataFolder:
    """A locked folder, while this object is open, with the database in it.

    The database has a lock of its own: a hard or symbolic link may put it in another folder, too.
    """

    def __init__(self, path: Path) -> None:
        """Make the folder if necessary and lock it; raise StartError if that fails.

        A missing folder on a disk where it cannot be made needs no lock.
        """
        self.path = path
        self._held: dict[tuple[int, int], int] = {}  # a descriptor by device and inode
        try:
            self.hold()
        except StartError:
            self.close()
            raise
        if self._held:
            self._sign()
            self._withdraw()

    def hold(self) -> None:
        """Lock the files that have the names of folder and database now; raise StartError."""
        try:
            make_folder(self.path)
        except OSError as error:
            if error.errno not in NO_DISK:
                raise self._refused(error) from error
        try:
            self._lock(self.path, os.O_DIRECTORY)
            if (database := self.path / FILE_NAME).is_file():
                with contextlib.suppress(PermissionError):  # the code that opens it reports that
                    self._lock(database, os.O_NONBLOCK)
        except OSError as error:
            raise self._refused(error) from error

    def close(self) -> None:
        """Release the locks; the database must be closed before, which has locks of the process."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _refused(self, error: OSError) -> StartError:
        text = f"{error.filename or self.path}: {error.strerror}"
        return StartError(f"{text}; choose another data folder, or make this one")

    def _lock(self, path: Path, flags: int) -> None:
        """Lock a file, once; do nothing if it does not exist. Raises StartError, OSError."""
        with contextlib.suppress(FileNotFoundError):
            found = path.stat()
            inode = found.st_dev, found.st_ino
            if inode in self._held:  # closing a descriptor would release the process's locks
                return
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(descriptor)
                process = holder(self.path)
                by = f" by process {process}" if process else ""
                raise StartError(f"{path} is in use{by}: each gateway needs its own") from error
            except OSError as error:  # the disk, or a file system without locks
                os.close(descriptor)
                raise OSError(error.errno, error.strerror, str(path)) from error
            self._held[inode] = descriptor

    def _sign(self) -> None:
        """Write the owner's process; the folder is locked without that, too."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        with (
            contextlib.suppress(OSError),
            open(os.open(self.path / LOCK, flags, 0o640), "w") as file,  # noqa: PTH123 - a descriptor
        ):
            file.truncate()
            file.write(f"{os.getpid()}\n")

    def _withdraw(self) -> None:
        """Remove other users' permission to read, as far as the disk lets it."""
        found: list[Path] = []
        with contextlib.suppress(OSError):  # of a failing disk, the database's open says more
            found += [each for pattern in PRIVATE for each in self.path.glob(pattern)]
        for each in found:
            with contextlib.suppress(OSError):
                mode = stat.S_IMODE(each.stat().st_mode)
                if mode & stat.S_IRWXO:
                    each.chmod(mode & ~stat.S_IRWXO)


def holder(path: Path) -> str:
    """Return the number of the process that has or last had the folder, empty if unknown."""
    file = path / LOCK
    with contextlib.suppress(OSError):
        if file.is_file():
            return file.read_text(errors="replace")[:20].strip()
    return ""
