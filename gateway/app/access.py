"""The access rules of a gateway's listeners, from its configuration and ACL files."""

from pathlib import Path

from gateway.access.access import AccessPolicy, Role
from gateway.access.acl_file import MAXIMUM_OF_ONE, AclError, AclRules, filter_fault, in_pieces
from gateway.access.rule import WORDS, Rule
from gateway.broker.client_classes import client_matcher
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.named_file import open_named, without_mark
from gateway.pieces import Pieces, complete
from gateway.settings.access import RoleSettings
from gateway.settings.listener import ListenerSettings

MAXIMUM_BYTES = 16 * 1024 * 1024
"""Bytes of an ACL file, which has far fewer rules."""

MAXIMUM_ROLES = 1_000


def access_policies(configuration: Configuration) -> list[AccessPolicy]:
    """Return the policy of each listener; those with the same rules and mount point share one.

    Raises ConfigurationError at the first rule that cannot be used.
    """
    operators, roles = configuration.access.operators, _roles(configuration)
    shared: dict[tuple[str | None, bool, str], AccessPolicy] = {}
    policies = []
    for listener in configuration.listeners:
        key = (listener.acl_file, _is_private(listener), listener.mount_point or "")
        if key not in shared:
            acl = complete(read_acl(listener))
            shared[key] = AccessPolicy(acl, () if key[1] else roles, operators, key[2])
        policies.append(shared[key])
    return policies


def _is_private(listener: ListenerSettings) -> bool:
    """Return whether only the permissions of a Unix socket decide who may use it."""
    return listener.path is not None and not listener.acl_file and not listener.password_file


def access_warnings(configuration: Configuration) -> list[str]:
    """Return a line for each listener whose rules depend on user names that nobody proves."""
    text = "rules use user names, which nothing proves here: set password_file or tls_identity"
    return [
        f"listener[{index}].acl_file: {text}"
        for index, listener in enumerate(configuration.listeners)
        if listener.acl_file and not listener.password_file and not listener.tls_identity
    ]


def read_acl(listener: ListenerSettings) -> Pieces[AclRules | None]:
    """Return the rules of a listener's ACL file, None if it has none; raise ConfigurationError."""
    if listener.acl_file is None:
        return None
    path = Path(listener.acl_file)
    try:
        with open_named(path) as file:
            data = file.read(MAXIMUM_BYTES + 1)
        if len(data) > MAXIMUM_BYTES:
            raise ConfigurationError(str(path), "", None, f"larger than {MAXIMUM_BYTES} bytes")
        return (yield from in_pieces(without_mark(data).decode()))
    except OSError as error:
        raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(path), "", None, f"not UTF-8 at byte {error.start}") from error
    except AclError as error:
        where = f"line {error.number}"
        raise ConfigurationError(str(path), where, error.value, error.allowed) from error


def _roles(configuration: Configuration) -> list[Role]:
    tables = configuration.access.roles
    if len(tables) > MAXIMUM_ROLES:
        allowed = f"at most {MAXIMUM_ROLES} of them"
        raise ConfigurationError(configuration.file, "access.role", len(tables), allowed)
    return [_role(configuration.file, index, role) for index, role in enumerate(tables)]


def _role(file: str, index: int, role: RoleSettings) -> Role:
    rules = []
    for word, grants in WORDS.items():
        for topic_filter in getattr(role, word):
            fault = filter_fault(topic_filter)
            if fault:
                raise ConfigurationError(file, f"access.role[{index}].{word}", topic_filter, fault)
            origin = f"role {role.name}: {word} {topic_filter}"
            rules.append(Rule(topic_filter, grants, origin, pattern=True))
    if len(rules) > MAXIMUM_OF_ONE:
        allowed = f"at most {MAXIMUM_OF_ONE} topic filters"
        raise ConfigurationError(file, f"access.role[{index}]", len(rules), allowed)
    names = [client_matcher(name) for name in role.users]
    return Role(
        lambda username: any(matches(username) for matches in names), role.anonymous, tuple(rules)
    )
