"""Finds the gateway of this machine by default: its socket for commands."""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from gateway.cli.parser import LOCAL_BROKER
from gateway.cli.run_arguments import DATA, INSTALLED
from gateway.config.operator_socket import SCHEME, folders_of, is_safe, is_too_long, socket_name

FOLDERS = (DATA, INSTALLED)
"""The default data folders: of a gateway that was started here, and of the service."""

CLOSED = (errno.EACCES, errno.EPERM)

MOST = 100
"""Sockets that are tried."""

TIMEOUT = 2.0
"""Seconds for a gateway to accept a connection."""


def default_url(username: str | None = None) -> str:
    """Return the URL of this machine's gateway: its socket, else LOCAL_BROKER.

    The socket has no users: a named user must connect to a listener.
    """
    return (None if username is not None else socket_url()) or LOCAL_BROKER


def socket_url() -> str | None:
    """Return the URL of the default socket, None without one.

    It is that of the first of FOLDERS whose gateway this user may use, or of the only other one.
    """
    first = first_url()
    others = [] if first is not None else other_urls()
    return others[0] if len(others) == 1 else first


def first_url() -> str | None:
    """Return the URL of the socket of the first of FOLDERS that has one, None without."""
    return next(filter(None, map(url_of, FOLDERS)), None)


def other_urls() -> list[str]:
    """Return the URLs of the gateways that this user may use, with any data folders."""
    paths: list[Path] = []
    for folder in folders_of(os.geteuid()):
        with contextlib.suppress(OSError):
            if is_safe(folder, os.geteuid()):
                paths += sorted(folder.glob("*.sock"))
    return [f"{SCHEME}://{path}" for path in paths[:MOST] if error_at(path) is None]


def url_of(data: Path) -> str | None:
    """Return the URL of the socket of the gateway with this data folder; None without an answer."""
    found = (path for path in _sockets(data) if error_at(path) is None)
    return next((f"{SCHEME}://{path}" for path in found), None)


def closed_socket() -> Path | None:
    """Return the socket of a gateway that this user may not use, None without one."""
    paths = (path for data in FOLDERS for path in _sockets(data))
    return next((path for path in paths if error_at(path) in CLOSED), None)


def _sockets(data: Path) -> Iterator[Path]:
    """Yield possible paths of the socket.

    For a data folder below the working folder, which anybody may have made, it must belong to this
    user or root.
    """
    try:
        owner, name = data.stat().st_uid, socket_name(data)
    except OSError:
        return
    if not data.is_absolute() and owner not in (os.geteuid(), 0):
        return
    for folder in folders_of(owner):
        with contextlib.suppress(OSError):
            if is_safe(folder, owner):
                yield folder / name


def error_at(path: Path) -> int | None:
    """Return the number of the error of a connection there, None without one."""
    if is_too_long(path):
        return errno.ENAMETOOLONG
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(TIMEOUT)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno or errno.ETIMEDOUT
    return None
