"""Changes one line of a password file atomically."""

from collections.abc import Callable
from pathlib import Path

from gateway.cli.file_edit import locked, replace_file
from gateway.config.named_file import without_mark
from gateway.errors import TidegateError
from gateway.server.passwords.file import load
from gateway.server.passwords.hashing import hash_password


def set_password(path: Path, username: str, ask: Callable[[], bytes], *, new: bool) -> None:
    """Set the user's password from `ask`; all other lines stay.

    A `new` user must not exist yet, any other must. Raises TidegateError, or ConfigurationError for
    an unusable file, before anybody is asked.
    """
    path = path.resolve()  # a link stays one
    with locked(path.parent):
        _check(path, username, new=new)
    line = f"{username}:{hash_password(ask())}".encode()  # which may take long
    with locked(path.parent):
        _check(path, username, new=new)
        before = without_mark(path.read_bytes()) if path.exists() else b""
        replace_file(path, _with_line(before, username, line))


def _check(path: Path, username: str, *, new: bool) -> None:
    known = load(path).users() if path.exists() or not new else []
    there = username in dict(known)
    if new and there:
        raise TidegateError(f"{path} has a user {username!r} already; passwd changes it")
    if not new and not there:
        raise TidegateError(f"{path} has no user {username!r}")


def _with_line(before: bytes, username: str, line: bytes) -> bytes:
    lines = before.split(b"\n")  # as in `load`
    for index, each in enumerate(lines):
        name = each.partition(b":")[0].strip()
        if name == username.encode() and not each.lstrip().startswith(b"#"):
            lines[index] = line
            return b"\n".join(lines)
    if not lines[-1]:
        lines.pop()
    return b"\n".join([*lines, line, b""])
