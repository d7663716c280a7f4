"""Warnings for listeners that let in more, or less, than their owner may think."""

from collections.abc import Iterator

from gateway.config.configuration import Configuration
from gateway.settings.listener import ListenerSettings
from gateway.settings.web_address import ANY, OPAQUE


def door_warnings(configuration: Configuration) -> Iterator[str]:
    """Give a line for each such listener."""
    for index, listener in enumerate(configuration.listeners):
        key = f"listener[{index}]"
        if listener.websocket:
            yield from _of_websocket(key, listener)
        if _is_closed_by_roles(configuration, listener):
            yield (
                f"{key}: since there are roles, clients without a user name may do nothing here,"
                " programs of this machine among them: give a role anonymous = true, or the"
                " listener a password_file. The tidegate commands of this machine get in by a"
                " socket of their own"
            )


def _of_websocket(key: str, listener: ListenerSettings) -> Iterator[str]:
    named = listener.websocket_origins or ()
    if ANY in named:
        yield (
            f'{key}.websocket_origins: "{ANY}" lets every page in that a browser on this network'
            " shows: name the pages that may connect"
        )
    elif OPAQUE in named:
        yield (
            f'{key}.websocket_origins: "{OPAQUE}" is the origin of every file and sandboxed frame,'
            " also of strangers' pages: name the pages that may connect"
        )
    if admits_anonymous(listener) and listener.client_ca is None:
        pages = f"pages of {', '.join(named)}" if named else "pages of its own address"
        yield (
            f"{key}.websocket: nobody is asked for a password here, {pages} and all programs that"
            " reach it: a password_file says who may connect"
        )


def _is_closed_by_roles(configuration: Configuration, listener: ListenerSettings) -> bool:
    """Return whether roles leave those without a user name in, and nothing to do."""
    roles = configuration.access.roles
    if not roles or listener.acl_file is not None or listener.path is not None:
        return False
    return admits_anonymous(listener) and not any(role.anonymous for role in roles)


def admits_anonymous(listener: ListenerSettings) -> bool:
    """Return whether a client without a user name is let in."""
    if listener.password_file is not None:
        return bool(listener.allow_anonymous)
    return listener.tls_identity is None and listener.allow_anonymous is not False
