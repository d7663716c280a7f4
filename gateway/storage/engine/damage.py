"""What an error of SQLite says of the disk, and the note that a damaged file leaves."""

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_READ_ERRORS = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}
_PERHAPS_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}

LITTLE_ROOM = 1024 * 1024
"""Free bytes below which an error that may have another cause is put down to a full disk."""


class DamagedError(Exception):
    """The file cannot be used as it is; the text says what was found."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error says that the file itself is wrong, or cannot be read."""
    code = _code(error)
    return code & 0xFF in _DAMAGE or code in _READ_ERRORS


def is_no_room(error: Exception) -> bool:
    """Return whether SQLite says that the disk is full."""
    return isinstance(error, sqlite3.Error) and _code(error) & 0xFF == sqlite3.SQLITE_FULL


def is_full(error: Exception, folder: Path) -> bool:
    """Return whether the error comes of a disk without room.

    SQLite reports it in other words where it makes a file or stretches its shared memory.
    """
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if not isinstance(error, sqlite3.Error) or is_damage(error):
        return False
    perhaps = _code(error) & 0xFF in _PERHAPS_FULL
    return is_no_room(error) or (perhaps and free_bytes(folder) < LITTLE_ROOM)


def is_write_error(error: Exception) -> bool:
    """Return whether the disk failed to take something, for whatever reason but want of room."""
    if isinstance(error, OSError):
        return error.errno == errno.EIO
    return (
        isinstance(error, sqlite3.Error)
        and _code(error) & 0xFF == sqlite3.SQLITE_IOERR
        and not is_damage(error)
    )


def free_bytes(folder: Path) -> int:
    """Return what the file system of the folder, or of where it would be, has left for us."""
    found = os.statvfs(_existing(folder))
    return found.f_bavail * found.f_frsize


def is_read_only(folder: Path) -> bool:
    """Return whether the folder, or where it would be, is on a file system that takes nothing."""
    return bool(os.statvfs(_existing(folder)).f_flag & os.ST_RDONLY)


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def note_damage(path: Path, text: str) -> bool:
    """Leave a note beside a database so that the next start sets it aside; False if that failed."""
    try:
        _note_of(path).write_text(text + "\n", encoding="utf-8")
    except OSError:
        return False
    return True


def noted_damage(path: Path) -> str | None:
    """Return what an earlier run found to be wrong, None when nothing."""
    with contextlib.suppress(OSError):
        return _note_of(path).read_text(encoding="utf-8", errors="replace").strip()
    return None


def forget_damage(path: Path) -> None:
    """Remove the note; raise OSError."""
    _note_of(path).unlink(missing_ok=True)


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + ".damaged")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR))
