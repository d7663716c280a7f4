"""Where the gateway of this machine is, if nobody says it: its socket for commands."""

import errno
import os
import socket
from pathlib import Path

from gateway.cli.parser import LOCAL_BROKER
from gateway.config.operator_socket import SCHEME, is_too_long, operator_socket

HERE = Path("var")
"""The data folder of `tidegate run` without --data."""

FOLDERS = (HERE, Path("/var/lib/tidegate"))
"""The data folders that are looked into: of a gateway that was started here, and of the service."""

CLOSED = (errno.EACCES, errno.EPERM)

TIMEOUT = 2.0
"""Seconds for a gateway to take a connection."""


def default_url(username: str | None = None) -> str:
    """Return the URL of this machine's gateway: its socket, else LOCAL_BROKER.

    The socket knows no users: who names one wants to be that user at a listener.
    """
    return (None if username is not None else socket_url()) or LOCAL_BROKER


def socket_url() -> str | None:
    """Return the URL of the first socket that a gateway listens at and this user may use."""
    for folder in FOLDERS:
        url = url_of(folder)
        if url is not None:
            return url
    return None


def url_of(data: Path) -> str | None:
    """Return the URL of the socket in a data folder; None if nobody answers who may be trusted."""
    path = operator_socket(data)
    if error_at(path) is not None or (data == HERE and not _is_ours(path)):
        return None
    return f"{SCHEME}://{path.absolute()}"


def closed_socket() -> Path | None:
    """Return the socket of a gateway that this user may not use, None without one."""
    paths = map(operator_socket, FOLDERS)
    return next((path for path in paths if error_at(path) in CLOSED), None)


def error_at(path: Path) -> int | None:
    """Return the number of the error of a connection there, None if there is none."""
    if is_too_long(path):
        return errno.ENAMETOOLONG
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(TIMEOUT)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno or errno.ETIMEDOUT
    return None


def _is_ours(path: Path) -> bool:
    """Return whether it is this user's or root's: anybody may have made a folder to work in."""
    return path.stat().st_uid in (os.geteuid(), 0)
