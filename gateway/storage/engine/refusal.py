"""What a disk that refuses the database at the start leaves to be done."""

from pathlib import Path

from gateway.errors import StartError
from gateway.storage.engine.damage import is_full, is_read_only, is_write_error
from gateway.storage.engine.reserve import Reserve


class NoDiskError(Exception):
    """The disk takes nothing; the text says why."""


class ReadOnlyError(NoDiskError):
    """Nor is it going to while somebody leaves it so."""


def makes_room(error: Exception, path: Path) -> bool:
    """Return whether a full disk has some room for one more attempt."""
    return is_full(error, path.parent) and Reserve(path.parent).release()


def refusal(error: Exception, path: Path) -> Exception:
    """Return what is to be raised of an error that no more room can help."""
    if is_read_only(path.parent):  # by now: some file systems answer an error of the disk so
        return ReadOnlyError(f"{path.parent} is on a read-only file system")
    if is_full(error, path.parent):
        return NoDiskError(f"no room for {path}: {error}")
    if is_write_error(error):
        return NoDiskError(f"{path} cannot be written: {error}")
    return StartError(f"{path}: {error}")
