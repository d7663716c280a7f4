"""The socket for commands of this machine, independent of the listeners' users and roles."""

import errno
import logging
import os
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

from gateway.access.access import AccessPolicy
from gateway.app.parts import Run
from gateway.broker.connecting.connection_info import Anonymous
from gateway.config.operator_socket import MODE, is_safe, is_too_long, own_folders, socket_name
from gateway.errors import StartError
from gateway.server.listening.connection_limits import ProcessConnections
from gateway.server.listening.listener import Listener
from gateway.server.listening.unix_socket import answers
from gateway.server.turn import Turn
from gateway.settings.checks import MAXIMUM_UNIX_PATH
from gateway.settings.listener import ListenerSettings

logger = logging.getLogger(__name__)

MAXIMUM_CONNECTIONS = 64
"""Concurrent commands: each is one connection."""

LEFTOVERS_AT_ONCE = 100
"""Other sockets that are checked at a start."""

LEFTOVER_SECONDS = 60.0
"""A socket of this age without a listener was left by a gateway that was killed."""


async def bind_operator_socket(
    run: Run, turn: Turn, process: ProcessConnections
) -> Listener | None:
    """Return the socket for commands, None if that fails: a gateway works without it.

    Its permissions decide who may use it, and each user of it is an operator: no rules apply.
    """
    try:
        name = socket_name(run.data)
    except OSError as error:
        _go_without(f"{run.data}: {error.strerror}")
        return None
    reasons = []
    for folder in own_folders():
        try:
            listener = await _bound(turn, process, folder, name)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
        except StartError as error:
            reasons.append(str(error))
        else:
            run.stack.push_async_callback(listener.close)
            return listener
    _go_without("; ".join(reasons))
    return None


async def _bound(turn: Turn, process: ProcessConnections, folder: Path, name: str) -> Listener:
    """Return a listener in this folder; raise OSError or StartError on failure."""
    _prepare(folder)
    path = folder / name
    if is_too_long(path):
        raise StartError(f"{path} has {len(os.fsencode(path))} bytes; at most {MAXIMUM_UNIX_PATH}")
    settings = ListenerSettings(path=str(path), mode=MODE, maximum_connections=MAXIMUM_CONNECTIONS)
    listener = Listener(settings, Anonymous(), turn, process=process, access=AccessPolicy())
    await listener.bind()
    return listener


def _prepare(folder: Path) -> None:
    """Make the folder, and remove sockets of killed gateways; raise OSError if it is not safe."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o755 if os.geteuid() == 0 else 0o700)
    if not is_safe(folder, os.geteuid()):
        raise PermissionError(errno.EPERM, "another user may change what is in it", str(folder))
    before = time.time() - LEFTOVER_SECONDS
    for path in islice(folder.glob("*.sock"), LEFTOVERS_AT_ONCE):
        with suppress(OSError):
            if path.lstat().st_mtime < before and path.is_socket() and not answers(path):
                path.unlink()


def _go_without(reason: str) -> None:
    logger.warning("no socket for commands: %s. They reach the gateway by its listeners", reason)
