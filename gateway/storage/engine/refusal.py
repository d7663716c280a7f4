"""What a disk that refuses the database at the start leaves to be done."""

import os
import sqlite3
from pathlib import Path

from gateway.errors import StartError
from gateway.storage.engine.damage import is_full, is_read_only, is_write_error
from gateway.storage.engine.reserve import Reserve


class NoDiskError(Exception):
    """The disk takes nothing; the text says why."""


class ReadOnlyError(NoDiskError):
    """Nor is it going to while somebody leaves it so."""


def has_space_for_retry(error: Exception, path: Path) -> bool:
    """Return whether a full disk has space for one more attempt."""
    return is_full(error, path.parent) and Reserve(path.parent).release()


def refusal(error: Exception, path: Path) -> Exception:
    """Return what is to be raised of an error that more space cannot mend."""
    if is_read_only(path.parent):  # by now: some file systems answer an error of the disk so
        return ReadOnlyError(f"{path.parent} is on a read-only file system")
    if is_full(error, path.parent):
        return NoDiskError(f"no space for {path}: {error}")
    if is_write_error(error):
        return NoDiskError(f"{path} cannot be written: {error}")
    return cannot_start(error, path)


def cannot_start(error: Exception, path: Path) -> StartError:
    """Return the error with what the person who reads it is to do."""
    return StartError(f"{path}: {error}; {_remedy(error, path)}")


def _remedy(error: Exception, path: Path) -> str:
    if isinstance(error, sqlite3.Error) and "locked" in str(error):
        return "end the program that uses it, and start again"
    if isinstance(error, PermissionError) or not os.access(path.parent, os.W_OK | os.X_OK):
        return f"let the gateway's user write to {path.parent} and what is in it"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return "let the gateway's user read and write it"
    return "look at the disk and the folder; to start without what is in it, move the file away"
