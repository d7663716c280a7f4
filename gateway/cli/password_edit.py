"""Changes one line of a password file: the file is there as it was or as it shall be."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.errors import TidegateError
from gateway.server.passwords.file import load
from gateway.server.passwords.hashing import hash_password

MODE = 0o640
"""Permissions of a new file: the gateway's group has to read it, nobody else."""


def set_password(path: Path, username: str, ask: Callable[[], bytes], *, new: bool) -> None:
    """Give the user the password that `ask` returns; all other lines stay as they are.

    A `new` user must not be there yet, any other must. Raises TidegateError, or
    ConfigurationError for a file that cannot be used, before anybody is asked.
    """
    path = path.resolve()  # a link stays one
    with _locked(path.parent):
        _check(path, username, new=new)
    line = f"{username}:{hash_password(ask())}".encode()  # which may take long
    with _locked(path.parent):
        _check(path, username, new=new)
        before = path.read_bytes() if path.exists() else b""
        _replace(path, _with_line(before, username, line))


def _check(path: Path, username: str, *, new: bool) -> None:
    known = load(path).users() if path.exists() or not new else []
    there = username in dict(known)
    if new and there:
        raise TidegateError(f"{path} has a user {username!r} already; passwd changes it")
    if not new and not there:
        raise TidegateError(f"{path} has no user {username!r}")


def _with_line(before: bytes, username: str, line: bytes) -> bytes:
    lines = before.split(b"\n")  # as `load` has it
    for index, each in enumerate(lines):
        name = each.partition(b":")[0].strip()
        if name == username.encode() and not each.lstrip().startswith(b"#"):
            lines[index] = line
            return b"\n".join(lines)
    if not lines[-1]:
        lines.pop()
    return b"\n".join([*lines, line, b""])


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let nobody else change the folder's password files in the same way meanwhile."""
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


def _replace(path: Path, data: bytes) -> None:
    """Put a synced file in the place of the old one, with its owner and permissions."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        status = path.stat() if path.exists() else None
        temporary.unlink(missing_ok=True)
        temporary.touch(0o600, exist_ok=False)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            if status is not None:
                _keep_owner(file.fileno(), status)
            os.fchmod(file.fileno(), MODE if status is None else status.st_mode & 0o7777)
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise TidegateError(f"{path}: {error.strerror}; nothing was changed") from error


def _keep_owner(descriptor: int, status: os.stat_result) -> None:
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, status.st_uid, status.st_gid)
