"""The path of the Unix socket for commands of this machine.

It is not in the data folder, whose copies would contain a socket, but in a runtime folder. It is
named by the data folder's device and inode, so each data folder has its own, whatever path leads to
it.
"""

import os
import stat
from pathlib import Path

from gateway.settings.checks import MAXIMUM_UNIX_PATH

MODE = 0o660
"""For root, and for the user and the group that the gateway runs as."""

SCHEME = "mqtt+unix"
"""Scheme of the URL of a Unix socket: `mqtt+unix:///run/tidegate/801.2f3a.sock`."""

SERVICE_FOLDER = Path("/run/tidegate")
"""The unit's RuntimeDirectory=, and root's own."""

FOLDER = "RUNTIME_DIRECTORY"
"""The environment variable with the service's runtime folder, or several separated by colons."""


def socket_name(data: Path) -> str:
    """Return the name of the socket of the gateway with this data folder; raise OSError."""
    found = data.stat()
    return f"{found.st_dev:x}.{found.st_ino:x}.sock"


def folders_of(user: int) -> list[Path]:
    """Return the possible folders of this user's sockets, those of the service first."""
    run = Path("/run/user") / str(user) / "tidegate"
    return [SERVICE_FOLDER, run, Path("/tmp") / f"tidegate-{user}"]  # noqa: S108 - a folder of its own


def own_folders() -> list[Path]:
    """Return the folders in which this process may make a socket, the best first."""
    user, given = os.geteuid(), os.environ.get(FOLDER, "").partition(":")[0]
    service, *own = folders_of(user)
    return [*([Path(given)] if given else []), *([service] if user == 0 else []), *own]


def is_safe(folder: Path, user: int) -> bool:
    """Return whether only root and this user can have made the content of their folder.

    In /tmp others may make a folder of that name first. The service's is in one of root's. Raises
    OSError.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & stat.S_IWOTH:
        return False
    return folder == SERVICE_FOLDER or found.st_uid in (0, user)


def is_too_long(path: Path) -> bool:
    """Return whether this path is too long for Linux."""
    return len(os.fsencode(path)) > MAXIMUM_UNIX_PATH
