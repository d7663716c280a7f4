"""Unix sockets: created with their permissions, and removed at the end."""

import errno
import socket
import stat
from pathlib import Path

from gateway.errors import StartError

PROBE_TIMEOUT = 1.0
"""Seconds to find out whether a process listens at a path."""


def bind_unix_socket(path: Path, mode: int, backlog: int) -> socket.socket:
    """Return a socket that listens at `path`; raise StartError or OSError on failure.

    A file that an earlier process left is removed. The socket listens at once, so that another
    gateway that starts at this moment does not mistake it for such a file. Permissions are set
    before, so that no unauthorized process can connect.
    """
    _remove_leftover(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(mode)
        listening.listen(backlog)
    except OSError:
        listening.close()
        raise
    return listening


def remove_unix_socket(path: Path, listening: socket.socket) -> None:
    """Close the socket and remove its file, unless another has replaced it."""
    listening.close()
    if not answers(path):
        path.unlink(missing_ok=True)


def _remove_leftover(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise StartError(f"cannot listen on {path}: there is a file that is no socket")
    if answers(path):
        raise StartError(f"cannot listen on {path}: another process listens there")
    path.unlink(missing_ok=True)


def answers(path: Path) -> bool:
    """Return whether a process may listen at the path: only a refusal proves that none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True
