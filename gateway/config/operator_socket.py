"""The Unix socket in a data folder at which the commands of this machine reach its gateway."""

import os
from pathlib import Path

from gateway.config.checks import MAXIMUM_UNIX_PATH

NAME = "tidegate.sock"

MODE = 0o660
"""For root, and for the user and the group that the gateway runs as."""

SCHEME = "mqtt+unix"
"""Of the URL of a Unix socket: `mqtt+unix:///var/lib/tidegate/tidegate.sock`."""


def operator_socket(data: Path) -> Path:
    """Return where the socket of the gateway with this data folder is."""
    return data / NAME


def is_too_long(path: Path) -> bool:
    """Return whether Linux takes no socket at this path."""
    return len(os.fsencode(path)) > MAXIMUM_UNIX_PATH
