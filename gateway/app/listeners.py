"""The listeners of a gateway, as its configuration has them."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gateway.access.access import AccessPolicy
from gateway.access.listeners import ListenerRights
from gateway.app.access import read_acl
from gateway.app.authenticators import Passwords, authenticator, password_file
from gateway.app.file_changes import changed_rules, changed_users
from gateway.app.parts import Core, Run
from gateway.broker import access
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.pieces import EMPTY_ON_PURPOSE, Pieces, complete
from gateway.server.listening.connection_limits import Room
from gateway.server.listening.listener import Listener
from gateway.server.transport_stack import load_websocket
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    import ssl

    from gateway.access.acl_file import AclRules
    from gateway.server.passwords.file import PasswordFile

_Result = TypeVar("_Result")

logger = logging.getLogger(__name__)


class ListenerMaker(NamedTuple):
    """Makes listeners from what they share."""

    core: Core
    room: Room
    passwords: Passwords

    def make(
        self, configuration: Configuration, index: int, access: AccessPolicy, files: "Files"
    ) -> Listener:
        """Return the listener at a place of the configuration, not bound yet."""
        settings = configuration.listeners[index]
        return Listener(
            settings,
            authenticator(self.passwords, settings, files.passwords),
            self.core.turn,
            tls=files.tls,
            room=self.room,
            access=access,
        )


class Files(NamedTuple):
    """What the files of a listener say."""

    passwords: "PasswordFile | None"
    tls: "ssl.SSLContext | None"
    acl: "AclRules | None"


async def reload_listeners(
    run: Run, core: Core, listeners: Sequence[Listener]
) -> tuple[list[str], str]:
    """Read certificates, password files and ACL files again, in pieces: they may be long.

    Access rules then hold for everybody, and a user whose password changed has to log in again.
    A listener whose files cannot be used keeps what it has, and the alarm `listener` says why.
    Returns what has changed in the files, a line for each, and what is wrong.
    """
    trouble, lines = "", list[str]()
    for index, listener in enumerate(listeners):
        try:
            file = run.configuration.file
            files = await between_turns(_read(listener.settings, file, index))
            _check_not_emptied(listener, core.policies[index], files)
        except ConfigurationError as error:
            trouble = str(error)
            logger.error("%s keeps its old files: %s", listener.address, error)  # noqa: TRY400 - a mistake of the file, not of ours
            continue
        listener.stack.tls = files.tls
        policy = core.policies[index]
        rules = await between_turns(changed_rules(policy.acl, files.acl))
        if rules:
            lines.append(f"access rules of {listener.settings.acl_file} have changed: {rules}")
            logger.info("%s", lines[-1])
        policy.replace(files.acl)
        if files.passwords is not None:
            lines += await _replace_users(listener, files.passwords)
    now = core.turn.now().monotonic
    await between_turns(access.apply(core.broker, core.policies, now))
    run.alarm("listener", trouble)
    if not trouble:
        logger.info("certificates, password files and access rules are read again")
    return lines, trouble


async def _replace_users(listener: Listener, passwords: "PasswordFile") -> list[str]:
    """Let in these users; return a line that says who has changed, if somebody has."""
    users = changed_users(listener.connections.users, passwords)
    lines = [f"users of {listener.address} have changed: {users}"] if users else []
    for line in lines:
        logger.info("%s", line)
    await between_turns(listener.connections.replace_users(passwords))
    return lines


def _check_not_emptied(listener: Listener, policy: AccessPolicy, files: Files) -> None:
    """Raise ConfigurationError for a file that has lost all that it said, but not on purpose."""
    acl, passwords, before = files.acl, files.passwords, policy.acl
    if acl is not None and not acl and not acl.empty_on_purpose and before:
        raise _emptied(listener.settings.acl_file, "rule")
    if passwords is None or len(passwords) or passwords.empty_on_purpose:
        return
    if len(listener.connections.users):
        raise _emptied(listener.settings.password_file, "user")


def _emptied(path: str | None, what: str) -> ConfigurationError:
    said = f"a file without a {what} that does not say `# {EMPTY_ON_PURPOSE}` may be half written"
    return ConfigurationError(str(path), "", None, said)


def read_files(configuration: Configuration, index: int) -> Files:
    """Return what the files of the listener at a place say; raise ConfigurationError.

    Its access rules are not among them.
    """
    settings = configuration.listeners[index]
    return Files(complete(password_file(settings)), _tls(settings, configuration.file, index), None)


def rights_of(listeners: Sequence[Listener]) -> dict[str, ListenerRights]:
    """Return the rights at these listeners, by their names."""
    return {each.settings.name: each.connections.rights for each in listeners}


def _read(settings: ListenerSettings, file: str, index: int) -> Pieces[Files]:
    passwords = yield from password_file(settings)
    tls = _tls(settings, file, index)
    return Files(passwords, tls, (yield from read_acl(settings)))


async def between_turns(pieces: Pieces[_Result]) -> _Result:
    """Do the work with a turn of all others between two pieces, and return its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: _Result = end.value
            return result
        await asyncio.sleep(0)


def check_listener(configuration: Configuration, index: int) -> None:
    """Raise ConfigurationError or StartError if the listener at this place cannot work."""
    settings = configuration.listeners[index]
    complete(password_file(settings))
    _tls(settings, configuration.file, index)
    if settings.websocket:
        load_websocket()


def _tls(settings: ListenerSettings, file: str, index: int) -> "ssl.SSLContext | None":
    """Return the TLS context of a listener, None if it has none and needs no TLS in memory."""
    if settings.tls_certificate is None:
        return None
    from gateway.server.tls.context import server_context

    return server_context(settings, file, index)
