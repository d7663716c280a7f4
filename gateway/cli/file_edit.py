"""Replaces a file atomically by an edited one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.errors import TidegateError

MODE = 0o640
"""Permissions of a new file: its group, that of its folder, may read it, and nobody else."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Exclude other editors of the folder's files."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise TidegateError(f"{folder}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, before: bytes | None = None) -> None:
    """Replace a file by a synced one, with its owner and permissions.

    Raises TidegateError if that fails, or if the file is not as it was `before`.
    """
    temporary = path.with_name(f"{path.name}.new")
    try:
        status = path.stat() if path.exists() else None
        temporary.unlink(missing_ok=True)
        temporary.touch(0o600, exist_ok=False)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            _set_owner(file.fileno(), status, path.parent)
            os.fchmod(file.fileno(), MODE if status is None else status.st_mode & 0o7777)
            os.fsync(file.fileno())
        if before is not None and path.read_bytes() != before:
            temporary.unlink(missing_ok=True)
            raise TidegateError(f"{path}: somebody has changed it meanwhile; nothing was changed")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise TidegateError(f"{path}: {error.strerror}; nothing was changed") from error


def _set_owner(descriptor: int, status: os.stat_result | None, folder: Path) -> None:
    """Give the old file's owner to its replacement, and the folder's group to a new file.

    The package's /etc/tidegate belongs to the group of the service, which must read the new file.
    """
    if status is None:
        if os.geteuid() == 0:  # others may only give groups of their own
            os.fchown(descriptor, -1, folder.stat().st_gid)
    elif (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, status.st_uid, status.st_gid)
