"""Roles: access rules for users that the configuration names by patterns."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gateway.access.rule import Rule


class Role(NamedTuple):
    """Rules for the clients whose user name it `names`, and for those without if `anonymous`."""

    names: Callable[[str], bool]
    anonymous: bool
    rules: tuple[Rule, ...]


def rules_of(roles: Iterable[Role], username: str | None) -> list[Rule]:
    """Return the rules of all roles that a client with this user name has."""
    return [
        rule
        for role in roles
        if (role.anonymous if username is None else role.names(username))
        for rule in role.rules
    ]
