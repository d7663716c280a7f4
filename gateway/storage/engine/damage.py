"""Classifies errors of SQLite, and notes a damaged file for the next start."""

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_OF_THE_MACHINE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}
"""Errors that do not depend on the file's content."""

_READ_ERRORS = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}
_PERHAPS_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}

UNREADABLE = (sqlite3.Error, sqlite3.Warning, ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions from a damaged database, in SQLite, in Python's sqlite3 and in code that uses values;
UnicodeDecodeError is a ValueError."""

_NOT_UTF_8 = "Could not decode to UTF-8"
"""The beginning of sqlite3's message for a text that is not UTF-8; it has no error code."""

LITTLE_SPACE = 1024 * 1024
"""Free bytes below which an ambiguous error is attributed to a full disk."""


class DamagedError(Exception):
    """The file cannot be used as it is; the text says why."""


class OtherSchemaError(Exception):
    """The file is sound, but its tables are not those of its version; the text says which."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error means that the file itself is wrong, or cannot be read."""
    code = _code(error)
    return code & 0xFF in _DAMAGE or code in _READ_ERRORS or str(error).startswith(_NOT_UTF_8)


def is_unreadable(error: Exception, path: Path) -> bool:
    """Return whether opening or reading the database failed because of its content.

    Errors of unknown cause count as damage: the file is set aside and salvaged, because a start
    that merely failed would fail in the same way for ever.
    """
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, UNREADABLE)
    code = _code(error)
    if code & 0xFF == sqlite3.SQLITE_READONLY:  # a damaged byte of the header causes it, too
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return is_damage(error) or code & 0xFF not in _OF_THE_MACHINE


def is_disk_full(error: BaseException) -> bool:
    """Return whether SQLite reports a full disk."""
    return isinstance(error, sqlite3.Error) and _code(error) & 0xFF == sqlite3.SQLITE_FULL


def is_full(error: Exception, folder: Path) -> bool:
    """Return whether the error comes from a full disk.

    SQLite reports it differently when it creates a file or extends its shared memory.
    """
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if not isinstance(error, sqlite3.Error) or is_damage(error):
        return False
    perhaps = _code(error) & 0xFF in _PERHAPS_FULL
    return is_disk_full(error) or (perhaps and free_bytes(folder) < LITTLE_SPACE)


def is_write_error(error: Exception) -> bool:
    """Return whether the disk failed to write, for any reason but a full disk."""
    if isinstance(error, OSError):
        return error.errno == errno.EIO
    return (
        isinstance(error, sqlite3.Error)
        and _code(error) & 0xFF == sqlite3.SQLITE_IOERR
        and not is_damage(error)
    )


def free_bytes(folder: Path) -> int:
    """Return the file system's free bytes at the folder, or where it would be.

    0 if that is unknown.
    """
    try:
        found = os.statvfs(_existing(folder))
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def is_read_only(folder: Path) -> bool:
    """Return whether the folder, or where it would be, is on a read-only file system."""
    try:
        return bool(os.statvfs(_existing(folder)).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def note_damage(path: Path, text: str) -> bool:
    """Note beside a database that the next start must set it aside; False if that failed."""
    note = _note_of(path)
    try:
        if note.exists() and not note.is_file():
            return False
        note.write_text(text + "\n", encoding="utf-8")
    except OSError:
        return False
    return True


def noted_damage(path: Path) -> str | None:
    """Return the damage that an earlier run noted, None without any."""
    note = _note_of(path)
    with contextlib.suppress(OSError):
        if note.is_file():
            return note.read_text(encoding="utf-8", errors="replace").strip()
    return None


def forget_damage(path: Path) -> None:
    """Remove the note; raise OSError."""
    _note_of(path).unlink(missing_ok=True)


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + ".damaged")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR))
