"""The way in for the commands of this machine, whatever users and roles the listeners have."""

import logging
import os
from typing import TYPE_CHECKING

from gateway.access.policy import AccessPolicy
from gateway.broker.access import Anonymous
from gateway.config.checks import MAXIMUM_UNIX_PATH
from gateway.config.operator_socket import MODE, is_too_long, operator_socket
from gateway.config.settings import ListenerConfig
from gateway.errors import StartError
from gateway.server.listening.connection_limits import Room
from gateway.server.listening.listener import Listener

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

MAXIMUM_CONNECTIONS = 64
"""Commands at one time: each is one connection."""


async def bind_operator_socket(gateway: "Gateway", room: Room) -> None:
    """Take the socket in the data folder, without which a gateway works all the same.

    Its permissions say who may use it, and who may use it is an operator: no rules hold there.
    """
    path = operator_socket(gateway.data)
    if any(each.path and _same(each.path, path) for each in gateway.configuration.listeners):
        return  # it is a listener of the configuration
    if is_too_long(path):
        _go_without(f"{path} has {len(os.fsencode(path))} bytes; at most {MAXIMUM_UNIX_PATH}")
        return
    settings = ListenerConfig(path=str(path), mode=MODE, maximum_connections=MAXIMUM_CONNECTIONS)
    listener = Listener(settings, Anonymous(), gateway.turn, room=room, access=AccessPolicy())
    try:
        await listener.bind()
    except StartError as error:
        _go_without(str(error))
        return
    gateway.stack.push_async_callback(listener.close)
    gateway.operator_socket = listener


def _same(configured: str, path: object) -> bool:
    return os.path.realpath(configured) == os.path.realpath(str(path))


def _go_without(reason: str) -> None:
    logger.warning("no socket for commands: %s. They reach the gateway by its listeners", reason)
