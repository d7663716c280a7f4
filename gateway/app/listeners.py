"""The listeners of a gateway, as its configuration has them."""

import logging
from typing import TYPE_CHECKING

from gateway.app.access import read_acl
from gateway.app.authenticators import authenticator, password_file
from gateway.app.descriptors import connection_limit
from gateway.broker import access
from gateway.config.errors import ConfigurationError
from gateway.config.settings import Configuration, ListenerConfig
from gateway.server.listening.connection_limits import Room
from gateway.server.listening.listener import Listener
from gateway.server.transport_stack import load_websocket

if TYPE_CHECKING:
    import ssl

    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)


def make_listeners(gateway: "Gateway") -> list[Listener]:
    """Return the listeners, not bound yet; raise ConfigurationError or StartError."""
    configuration = gateway.configuration
    room = Room(connection_limit())
    return [
        Listener(
            settings,
            authenticator(gateway, settings),
            gateway.turn,
            tls=_tls(settings, configuration.file, index),
            room=room,
            access=gateway.policies[index],
        )
        for index, settings in enumerate(configuration.listeners)
    ]


def reload_listeners(gateway: "Gateway") -> None:
    """Read certificates, password files and ACL files again.

    Access rules hold at once for everybody, and a user whose password changed has to log in again.
    A listener whose files cannot be used keeps what it has, and the alarm `listener` says why.
    """
    trouble = ""
    for index, listener in enumerate(gateway.listeners):
        try:
            who = authenticator(gateway, listener.settings)
            tls = _tls(listener.settings, gateway.configuration.file, index)
            acl = read_acl(listener.settings)
        except ConfigurationError as error:
            trouble = str(error)
            logger.error("%s keeps its old files: %s", listener.address, error)  # noqa: TRY400 - a mistake of the file, not of ours
            continue
        listener.stack.tls = tls
        listener.connections.replace_authenticator(who)
        gateway.policies[index].replace(acl)
    access.apply(gateway.broker, gateway.policies)
    gateway.telemetry.alarm("listener", trouble)
    if not trouble:
        logger.info("certificates, password files and access rules are read again")


def check_listener(configuration: Configuration, index: int) -> None:
    """Raise ConfigurationError or StartError if the listener at this place cannot work."""
    settings = configuration.listeners[index]
    password_file(settings)
    _tls(settings, configuration.file, index)
    if settings.websocket:
        load_websocket()


def _tls(settings: ListenerConfig, file: str, index: int) -> "ssl.SSLContext | None":
    """Return the TLS context of a listener, None if it has none and needs no TLS in memory."""
    if settings.tls_certificate is None:
        return None
    from gateway.server.tls.context import server_context

    return server_context(settings, file, index)
