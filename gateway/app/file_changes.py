"""What has changed in the files of a listener, in words for the log."""

from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from typing import TYPE_CHECKING

from gateway.access.acl_file import AclRules
from gateway.access.rule import Rule
from gateway.pieces import LINES, Pieces

if TYPE_CHECKING:
    from gateway.server.passwords.file import PasswordFile

NAMED = 10
"""Users that a line names; it counts the others."""

SHOWN = 40
"""Characters of a user name that it shows."""


def changed_rules(old: AclRules | None, new: AclRules | None) -> Pieces[str]:
    """Return how many rules came and went, and for whom; nothing if none did."""
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
    named = ", ".join(nsmallest(NAMED, users))  # to sort 90,000 of them would be a long piece
    return f"{came} rules came, {went} went: {named}{others}"


def changed_users(old: "PasswordFile", new: "PasswordFile") -> str:
    """Return who came, went, or has another password; nothing if nobody has."""
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
"""Whom patterns are about."""


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
    """Return the rules without the number of their line."""
    return Counter((rule.topic_filter, rule.grants) for rule in rules)


def _named(users: list[str]) -> str:
    more = len(users) - NAMED
    return ", ".join(users[:NAMED]) + (f" and {more} more" if more > 0 else "")
