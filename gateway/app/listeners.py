"""The configured listeners of a gateway, and the changes of their files."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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


class FileChanges(NamedTuple):
    """The result of reading the files of all listeners again."""

    lines: list[str]
    """The changes of users and rules."""

    trouble: str
    """The faults, empty without one."""

    old_tls: set[int]
    """Listeners, by index, whose TLS files are not used."""


class Files(NamedTuple):
    """The content of a listener's files, except its access rules."""

    passwords: "PasswordFile | None"
    tls: "ssl.SSLContext | None"


async def reload_listeners(run: Run, core: Core, listeners: Sequence[Listener]) -> FileChanges:
    """Read certificates, password files and ACL files again, in pieces: they may be long.

    Access rules then apply to everybody, and a user whose password changed must log in again. An
    unusable file changes nothing, and the alarm `listener` has the reason; the others are used, so
    that a wrong certificate lets nobody in whose user or right was removed.
    """
    faults, lines, old_tls = list[str](), list[str](), set[int]()
    for index, listener in enumerate(listeners):
        before = list(faults)
        with _noted(faults, listener):
            listener.stack.tls = _tls(listener.settings, run.configuration.file, index)
        if faults != before:
            old_tls.add(index)
        with _noted(faults, listener):
            lines += await _replace_rules(listener, core.policies[index])
        with _noted(faults, listener):
            lines += await _replace_users(listener)
    trouble = "; ".join(dict.fromkeys(faults))
    now = core.turn.now().monotonic
    await between_turns(access.apply(core.broker, core.policies, now))
    run.alarm("listener", trouble)
    if not trouble:
        logger.info("certificates, password files and access rules are read again")
    return FileChanges(lines, trouble, old_tls)


@contextmanager
def _noted(faults: list[str], listener: Listener) -> Iterator[None]:
    """Note and log the fault of a file, which stays as it was read before."""
    try:
        yield
    except ConfigurationError as error:
        faults.append(str(error))
        logger.error("%s continues with its old file: %s", listener.address, error)  # noqa: TRY400 - the fault is in the file, not ours


async def _replace_rules(listener: Listener, policy: AccessPolicy) -> list[str]:
    """Read the rules and use them; return a line with the changed ones, if any."""
    acl, path = await between_turns(read_acl(listener.settings)), listener.settings.acl_file
    if acl is not None and not acl and not acl.empty_on_purpose and policy.acl:
        raise _emptied(path, "rule")
    rules = await between_turns(changed_rules(policy.acl, acl))
    policy.replace(acl)
    lines = [f"access rules of {path} have changed: {rules}"] if rules else []
    for line in lines:
        logger.info("%s", line)
    return lines


async def _replace_users(listener: Listener) -> list[str]:
    """Read the users and use them; return a line with the changed ones, if any."""
    passwords = await between_turns(password_file(listener.settings))
    if passwords is None:
        return []
    if not len(passwords) and not passwords.empty_on_purpose and len(listener.connections.users):
        raise _emptied(listener.settings.password_file, "user")
    users = changed_users(listener.connections.users, passwords)
    lines = [f"users of {listener.address} have changed: {users}"] if users else []
    for line in lines:
        logger.info("%s", line)
    await between_turns(listener.connections.replace_users(passwords))
    return lines


def _emptied(path: str | None, what: str) -> ConfigurationError:
    reason = f"a file without a {what} that does not say `# {EMPTY_ON_PURPOSE}` may be incomplete"
    return ConfigurationError(str(path), "", None, reason)


def read_files(configuration: Configuration, index: int) -> Files:
    """Return the content of this listener's files; raise ConfigurationError."""
    settings = configuration.listeners[index]
    return Files(complete(password_file(settings)), _tls(settings, configuration.file, index))


def rights_of(listeners: Sequence[Listener]) -> dict[str, ListenerRights]:
    """Return the rights at these listeners, by their names."""
    return {each.settings.name: each.connections.rights for each in listeners}


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
