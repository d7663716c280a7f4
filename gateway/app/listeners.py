"""The configured listeners of a gateway, and the changes of their files."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import AclRules
from gateway.access.listeners import ListenerRights
from gateway.access.rule import Rule
from gateway.app.access import read_acl
from gateway.app.authenticators import Passwords, authenticator, password_file
from gateway.app.parts import Core, Run
from gateway.broker import access
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.pieces import EMPTY_ON_PURPOSE, LINES, Pieces, complete
from gateway.server.listening.connection_limits import ProcessConnections
from gateway.server.listening.listener import Listener
from gateway.server.transport_stack import load_websocket
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    import ssl

    from gateway.server.passwords.file import PasswordFile

_Result = TypeVar("_Result")

logger = logging.getLogger(__name__)


class ListenerMaker(NamedTuple):
    """Makes listeners from common parts."""

    core: Core
    process: ProcessConnections
    passwords: Passwords

    def make(
        self, configuration: Configuration, index: int, access: AccessPolicy, files: "Files"
    ) -> Listener:
        """Return the listener at this index of the configuration, not bound yet."""
        settings = configuration.listeners[index]
        return Listener(
            settings,
            authenticator(self.passwords, settings, files.passwords),
            self.core.turn,
            tls=files.tls,
            process=self.process,
            access=access,
        )


class Files(NamedTuple):
    """The content of a listener's files."""

    passwords: "PasswordFile | None"
    tls: "ssl.SSLContext | None"
    acl: "AclRules | None"


async def reload_listeners(
    run: Run, core: Core, listeners: Sequence[Listener]
) -> tuple[list[str], str]:
    """Read certificates, password files and ACL files again, in pieces: they may be long.

    Access rules then apply to everybody, and a user whose password changed must log in again. A
    listener whose files are unusable keeps its present ones, and the alarm `listener` has the
    reason. Returns the changes in the files, a line for each, and the faults.
    """
    trouble, lines = "", list[str]()
    for index, listener in enumerate(listeners):
        try:
            file = run.configuration.file
            files = await between_turns(_read(listener.settings, file, index))
            _check_not_emptied(listener, core.policies[index], files)
        except ConfigurationError as error:
            trouble = str(error)
            logger.error("%s continues with its old files: %s", listener.address, error)  # noqa: TRY400 - the fault is in the file, not ours
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
    """Use these users; return a line with the changed ones, if any."""
    users = changed_users(listener.connections.users, passwords)
    lines = [f"users of {listener.address} have changed: {users}"] if users else []
    for line in lines:
        logger.info("%s", line)
    await between_turns(listener.connections.replace_users(passwords))
    return lines


def _check_not_emptied(listener: Listener, policy: AccessPolicy, files: Files) -> None:
    """Raise ConfigurationError for a file that has lost all its content unintentionally."""
    acl, passwords, before = files.acl, files.passwords, policy.acl
    if acl is not None and not acl and not acl.empty_on_purpose and before:
        raise _emptied(listener.settings.acl_file, "rule")
    if passwords is None or len(passwords) or passwords.empty_on_purpose:
        return
    if len(listener.connections.users):
        raise _emptied(listener.settings.password_file, "user")


def _emptied(path: str | None, what: str) -> ConfigurationError:
    reason = f"a file without a {what} that does not say `# {EMPTY_ON_PURPOSE}` may be incomplete"
    return ConfigurationError(str(path), "", None, reason)


def read_files(configuration: Configuration, index: int) -> Files:
    """Return the content of this listener's files; raise ConfigurationError.

    Access rules are not included.
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
    """Do the work with a turn of the loop between two pieces, and return its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: _Result = end.value
            return result
        await asyncio.sleep(0)


def check_listener(configuration: Configuration, index: int) -> None:
    """Raise ConfigurationError or StartError if the listener at this index cannot work."""
    settings = configuration.listeners[index]
    complete(password_file(settings))
    _tls(settings, configuration.file, index)
    if settings.websocket:
        load_websocket()


def _tls(settings: ListenerSettings, file: str, index: int) -> "ssl.SSLContext | None":
    """Return the TLS context of a listener, None if it has none, and then without importing TLS."""
    if settings.tls_certificate is None:
        return None
    from gateway.server.tls.context import server_context

    return server_context(settings, file, index)


NAMED = 10
"""Users that a line names; it counts the others."""

SHOWN = 40
"""Characters of a user name that it shows."""


def changed_rules(old: AclRules | None, new: AclRules | None) -> Pieces[str]:
    """Return how many rules were added and removed, and for whom; nothing if none were."""
    before, after = _by_user(old), _by_user(new)
    came = went = rules = 0
    users: list[str] = []
    for user in (*after, *(user for user in before if user not in after)):
        one, other = before.get(user, ()), after.get(user, ())
        rules += len(one) + len(other)
        if rules >= LINES:
            rules = 0
            yield
        if one == other:
            continue
        earlier, later = _counted(one), _counted(other)
        more, less = (later - earlier).total(), (earlier - later).total()
        came, went = came + more, went + less
        if more or less:
            users.append(f"{_user(user)} +{more} -{less}")
    if not users:
        return ""
    others = f" and {len(users) - NAMED} more" if len(users) > NAMED else ""
    named = ", ".join(nsmallest(NAMED, users))  # sorting 90,000 of them would be a long piece
    return f"{came} rules came, {went} went: {named}{others}"


def changed_users(old: "PasswordFile", new: "PasswordFile") -> str:
    """Return users that were added, removed, or have another password; nothing without any."""
    here = [name for name in new.names() if old.has(name)]
    kinds = {
        "came": [name for name in new.names() if not old.has(name)],
        "went": [name for name in old.names() if not new.has(name)],
        "have another password": [name for name in here if not new.same(old, name)],
    }
    return ", ".join(
        f"{len(names)} users {what}: {_named([_shown(name) for name in names])}"
        for what, names in kinds.items()
        if names
    )


EVERYBODY = object()
"""The subject of patterns."""


def _by_user(acl: AclRules | None) -> dict[object, list[Rule]]:
    """Return the rules by user name, None for clients without one."""
    if acl is None:
        return {}
    found: dict[object, list[Rule]] = {user: rules for user, rules in acl.users.items()}  # noqa: C416 - another type
    found[EVERYBODY] = acl.patterns
    return found


def _user(user: object) -> str:
    if user is EVERYBODY:
        return "everybody"
    return f"user {_shown(user)}" if isinstance(user, str) else "without a user name"


def _shown(user: str) -> str:
    return repr(user[:SHOWN])


def _counted(rules: Iterable[Rule]) -> Counter[tuple[str, int]]:
    """Return the rules without their line numbers."""
    return Counter((rule.topic_filter, rule.grants) for rule in rules)


def _named(users: list[str]) -> str:
    more = len(users) - NAMED
    return ", ".join(users[:NAMED]) + (f" and {more} more" if more > 0 else "")
